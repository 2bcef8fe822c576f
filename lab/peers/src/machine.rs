//! Telling one CPU from another, for libraries that were compiled for just one.
#![forbid(unsafe_code)]

use crate::card::hex_sha256;

/// This CPU's name and a short digest of its features, as the operating system gives them.
///
/// A library compiled for one CPU dies of an illegal instruction on a lesser one. Equal texts mean
/// equal features. On systems that do not list features, the text is only the architecture's name.
pub fn this_cpu() -> String {
    match std::fs::read_to_string("/proc/cpuinfo") {
        Ok(text) => from_cpuinfo(&text),
        Err(_) => std::env::consts::ARCH.to_owned(),
    }
}

fn from_cpuinfo(text: &str) -> String {
    let field = |names: &[&str]| {
        let mut fields = text.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(name, _)| names.contains(&name.trim())).map(|(_, value)| value.trim())
    };
    let name = field(&["model name", "CPU part"]).unwrap_or(std::env::consts::ARCH);
    let mut features: Vec<_> = field(&["flags", "Features"]).unwrap_or_default().split(' ').collect();
    features.sort_unstable();
    format!("{name}, features {}", &hex_sha256(features.join(" ").as_bytes())[..12])
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "processor\t: 0\nmodel name\t: A CPU\nflags\t\t: fpu sse avx2\n\nprocessor\t: 1\n";

    #[test]
    fn features_tell_cpus_of_one_name_apart() {
        let one = from_cpuinfo(ONE);
        assert!(one.starts_with("A CPU, features "), "{one}");
        assert_eq!(from_cpuinfo(&ONE.replace("sse avx2", "avx2 sse")), one);
        assert_ne!(from_cpuinfo(&ONE.replace(" avx2", "")), one);
        assert_ne!(from_cpuinfo(&ONE.replace("A CPU", "B CPU")), one);
        assert!(from_cpuinfo("").starts_with(std::env::consts::ARCH));
    }
}
