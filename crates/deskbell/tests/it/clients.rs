//! Clients of the official SDKs.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::path::{Path, PathBuf};

/// A file that `scripts/test-clients.sh` installs, by its path below `.tools`.
#[track_caller]
pub(crate) fn tool(path: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let file = root.join(".tools").join(path);
    assert!(file.exists(), "{path} is not installed; run scripts/test-clients.sh");
    file
}
