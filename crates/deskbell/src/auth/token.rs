//! The token of the state folder: whoever can read the user's files may speak for the user.

use std::{
    fs::{self, OpenOptions, Permissions},
    io::{self, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

use aws_lc_rs::rand;

/// A secret that lets its bearer in. Never printed.
#[derive(Clone)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(hidden)")
    }
}

impl Token {
    #[cfg(test)]
    pub(super) fn for_tests(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The token as text, to be shown to its owner only.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// Bytes of randomness in a generated token.
const TOKEN_BYTES: usize = 32;

/// The shortest token that a file may hold, in characters. A shorter one could be guessed.
const SHORTEST: usize = 32;

/// The token in the file at `path`, which is made with a random one when it is not there.
///
/// # Errors
/// Fails when the file can neither be read nor made, and when its token is too short.
pub fn state_token(path: &Path) -> io::Result<Token> {
    match fs::read_to_string(path) {
        Ok(text) if !text.trim().is_empty() => {
            // A copy or an editor may have opened it to others.
            fs::set_permissions(path, Permissions::from_mode(0o600))?;
            let token = text.trim();
            if token.chars().count() < SHORTEST {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!(
                        "the token in {} is too short, expected at least {SHORTEST} characters; remove the file, and a new one is made",
                        path.display()
                    ),
                ));
            }
            return Ok(Token(token.to_owned()));
        }
        Ok(_) => fs::remove_file(path)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut bytes = [0; TOKEN_BYTES];
    rand::fill(&mut bytes).map_err(|_| io::Error::other("the system gives no random numbers"))?;
    let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{token}")?;
    Ok(Token(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_of_the_state_folder_is_made_once_and_for_the_user_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let token = state_token(&path).unwrap();
        assert_eq!(token.reveal().len(), 2 * TOKEN_BYTES);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert_eq!(state_token(&path).unwrap().reveal(), token.reveal());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!format!("{token:?}").contains(token.reveal()));
    }

    #[test]
    fn a_token_that_could_be_guessed_is_refused_and_one_that_was_never_written_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, format!("{}\n", "x".repeat(SHORTEST - 1))).unwrap();
        let refusal = state_token(&path).unwrap_err().to_string();
        assert!(refusal.contains("too short") && refusal.contains("remove the file"), "{refusal}");
        assert!(!refusal.contains("xxx"), "{refusal}");
        fs::write(&path, "x".repeat(SHORTEST)).unwrap();
        assert_eq!(state_token(&path).unwrap().reveal().len(), SHORTEST);
        fs::write(&path, "\n").unwrap();
        assert_eq!(state_token(&path).unwrap().reveal().len(), 2 * TOKEN_BYTES);
    }
}
