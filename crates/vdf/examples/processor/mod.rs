//! The processor time of this process.
#![forbid(unsafe_code)]

/// Seconds of processor time used by this process, all threads together; `None` if the system does not report it.
pub(crate) fn processor() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // After the name, which may hold anything but ends in the last bracket: user and system time are the 12th and 13th.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks: f64 = fields.next()?.parse::<f64>().ok()? + fields.next()?.parse::<f64>().ok()?;
    Some(ticks / 100.0)
}
