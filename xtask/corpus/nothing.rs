//! Empty: the manifest beside this file only names packages.
