//! Edits of correct rewrites, each of which breaks one obligation.

/// A function with two paths, a loop, an operand that is read and one that is changed, calls into the file and out of it.
pub(crate) const PATHS: &str = "
        .text
        .globl f
f:      pushq %rbx
        subq $64, %rsp
        movq %rdi, 8(%rsp)
        movq %rsi, 16(%rsp)
        movl %edx, 24(%rsp)
        movl $3, %ecx
.Lnext: movq 8(%rsp), %rax
        addq %rax, 16(%rsp)
        addq 16(%rsp), %rax
        movl 24(%rsp), %edx
        addq %rdx, %rax
        movq %rax, 8(%rsp)
        decl %ecx
        jne .Lnext
        testq %rax, %rax
        js .Lrare
        call L_mix
        movq 16(%rsp), %rcx
        addq %rcx, %rax
        jmp .Lend
.Lrare: movq 16(%rsp), %rax
        notq %rax
.Lend:  movq %rax, %rdi
        call memset
        movq %rax, 40(%rsp)
        leaq 1(%rax), %rax
        addq 40(%rsp), %rax
        addq $64, %rsp
        popq %rbx
        ret
L_mix:  movq %rax, -8(%rsp)
        rolq $7, %rax
        movq -8(%rsp), %rdx
        xorq %rdx, %rax
        ret
";

/// A function that calls itself by way of another, and is left by a jump on a condition over which a value lives.
pub(crate) const CYCLES: &str = "
        .text
        .globl f
f:      subq $24, %rsp
        movq %rdi, 8(%rsp)
        movq %rsi, 16(%rsp)
        leaq 5(%rdi), %rdi
        movq 8(%rsp), %rax
        movq 16(%rsp), %rcx
        addq %rcx, %rax
        andl $3, %esi
        je .Lleaf
        decl %esi
        call L_again
.Lleaf: addq $24, %rsp
        movq %rax, -8(%rsp)
        leaq 1(%rax), %rax
        testq %rax, %rax
        js L_tail
        movq -8(%rsp), %rcx
        addq %rcx, %rax
        ret
L_again:
        movq %rdi, -16(%rsp)
        addq %rax, %rdi
        movq -16(%rsp), %rdx
        xorq %rdx, %rdi
        jmp f
        .type L_tail, @function
L_tail: movq %rax, -8(%rsp)
        notq %rax
        movq -8(%rsp), %rdx
        addq %rdx, %rax
        .byte 0xf3, 0xc3
";

fn is_move(line: &str) -> bool {
    let name = line.split_ascii_whitespace().next().unwrap_or_default();
    ["movq", "movd", "vmovq", "vmovd", "kmovq", "kmovd", "vpbroadcastq", "valignq"].contains(&name)
        && ["%xmm", "%mm", "%k", "%zmm"].iter().any(|home| line.contains(home))
}

/// Every edit of one line of a rewrite that changes what the rewrite does.
pub(crate) fn mutants(text: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let with = |n: usize, line: Option<String>| {
        let mut out: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
        match line {
            Some(line) => out[n] = line,
            None => {
                out.remove(n);
            }
        }
        out.join("\n") + "\n"
    };
    let mut out = Vec::new();
    for (n, &line) in lines.iter().enumerate() {
        let said = line.trim();
        let own =
            is_move(said) || ["emms", "pxor", "kx", "ks", "vpxor"].iter().any(|name| said.starts_with(name));
        if !own {
            // Instructions that are not part of the rewrite.
            for (what, new) in [
                ("another constant", said.replace("$7", "$9").replace("$3,", "$4,")),
                ("another register", said.replace("%rax, %rdi", "%rcx, %rdi")),
                (
                    "another target",
                    said.replace("jne .Lnext", "jne .Lend").replace("js .Lrare", "jns .Lrare"),
                ),
                (
                    "a home is written on the way",
                    said.replace("notq %rax", "notq %rax\n pxor %xmm15, %xmm15\n pxor %mm0, %mm0"),
                ),
                ("a result is cleared", said.replace("ret", "pxor %xmm0, %xmm0\n ret")),
                ("flags", said.replace("js .Lrare", "testq %rcx, %rcx\n js .Lrare")),
            ] {
                if new != said {
                    out.push((format!("{what} in line {}: {said}", n + 1), with(n, Some(new))));
                }
            }
            continue;
        }
        let label = said.split_once(": ").map_or("", |(label, _)| label);
        let keep = if label.is_empty() { None } else { Some(format!("{label}:")) };
        // Clearing a home is a courtesy, and may go.
        if is_move(said) {
            out.push((format!("without line {}: {said}", n + 1), with(n, keep)));
            for (from, to) in [
                ("%rax", "%rsi"),
                ("%rdi", "%rsi"),
                ("%rdx", "%rsi"),
                ("%rcx", "%rsi"),
                ("%eax", "%esi"),
                ("%edx", "%esi"),
            ] {
                if said.contains(from) {
                    let new = line.replacen(from, to, 1);
                    out.push((format!("another register in line {}: {said}", n + 1), with(n, Some(new))));
                }
            }
            for (from, to) in [
                ("%xmm15", "%xmm14"),
                ("%xmm14", "%xmm15"),
                ("%mm0", "%mm1"),
                ("%mm1", "%mm0"),
                ("%k1", "%k2"),
                ("%k2", "%k1"),
                ("%mm2", "%mm3"),
                ("%xmm13", "%xmm12"),
                ("$1", "$2"),
                ("$2", "$3"),
                ("%zmm16", "%zmm17"),
            ] {
                if said.contains(from) {
                    let new = line.replacen(from, to, 1);
                    out.push((format!("{to} in line {}: {said}", n + 1), with(n, Some(new))));
                }
            }
        }
        if said == "emms" || said.starts_with("ks") || said.starts_with("kxn") {
            out.push((format!("without line {}: {said}", n + 1), with(n, None)));
        }
        // Next to each other in another order.
        if let Some(next) = lines.get(n + 1).filter(|next| {
            is_move(said) && !next.contains(':') && !label.contains('L') && is_move(next.trim())
        }) {
            let mut all: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
            all.swap(n, n + 1);
            let swapped = all.join("\n") + "\n";
            let [one, two] =
                [said, next.trim()].map(|said| said.rsplit(' ').next().unwrap_or_default().to_owned());
            let touches = |a: &str, b: &str| a.contains(b.trim_end_matches(','));
            if touches(next, &one) || touches(said, &two) {
                out.push((format!("lines {} and {} exchanged: {said}", n + 1, n + 2), swapped));
            }
        }
    }
    out
}
