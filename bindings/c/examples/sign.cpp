// The same library from C++: handles in smart pointers, statuses as exceptions.
#include <lanework.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

static void must(lw_status status) {
    if (status != LW_STATUS_OK) throw std::runtime_error(lw_status_text(status));
}

template <auto Free> struct Freed {
    template <typename T> void operator()(T *handle) const { Free(handle); }
};
using Secret = std::unique_ptr<const lw_mayo_secret_key, Freed<lw_mayo_secret_key_free>>;
using Public = std::unique_ptr<const lw_mayo_public_key, Freed<lw_mayo_public_key_free>>;

int main() {
    const lw_mayo_secret_key *made = nullptr;
    must(lw_mayo_secret_key_generate(LW_MAYO1, &made));
    Secret secret(made);
    const lw_mayo_public_key *half = nullptr;
    must(lw_mayo_secret_key_public(secret.get(), &half));
    Public key(half);

    const std::string message = "a message";
    auto bytes = reinterpret_cast<const std::uint8_t *>(message.data());
    std::vector<std::uint8_t> signature(lw_mayo_signature_bytes(lw_mayo_secret_key_set(secret.get())));
    must(lw_mayo_sign(secret.get(), bytes, message.size(), signature.data(), signature.size()));
    must(lw_mayo_verify(key.get(), bytes, message.size(), signature.data(), signature.size()));

    try {
        must(lw_mayo_verify(key.get(), bytes, message.size() - 1, signature.data(), signature.size()));
    } catch (const std::runtime_error &refused) {
        std::printf("another message: %s\n", refused.what());
        return 0;
    }
    return 1;
}
