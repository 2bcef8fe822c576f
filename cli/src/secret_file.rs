//! Files that hold a secret: whether others may read them.
#![forbid(unsafe_code)]

use std::path::Path;

use lanework_study::Message;

use crate::ui::Session;

/// Warns where the owner of a key or a passphrase is not the only one who may read it.
pub(crate) fn warn_if_shared(session: &Session, path: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // A file that cannot be examined cannot be read either, and reading reports why.
        let Ok(file) = std::fs::metadata(path) else { return };
        let mode = file.permissions().mode() & 0o777;
        if path.as_os_str() != "-" && file.is_file() && mode & 0o044 != 0 {
            let path = lanework_study::text::shown(path);
            let warning = Message::new(format!("{path}: others may read this secret (mode {mode:03o})"));
            session.warn(warning.help(format!("chmod 600 {path}")));
        }
    }
    #[cfg(not(unix))]
    let _ = (session, path);
}
