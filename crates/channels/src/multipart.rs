//! A form with files in it (RFC 7578).

use crate::files::ReadFile;

/// A form as it is sent, and as a preview shows it.
pub(crate) struct Form {
    pub(crate) content_type: String,
    pub(crate) bytes: Vec<u8>,
    /// The same with the size of each file in place of what it holds.
    pub(crate) shown: String,
}

/// The form of `fields` and, each under the name `part`, of `files`. `seed` is something that is the same in every attempt.
pub(crate) fn form(fields: &[(&str, &str)], part: &str, files: &[&ReadFile], seed: &str) -> Form {
    let boundary = boundary(fields, files, seed);
    let begin = format!("--{boundary}\r\nContent-Disposition: form-data; name=");
    let field =
        |(name, value): &(&str, &str)| format!("{begin}\"{}\"\r\n\r\n{value}\r\n", quoted(name));
    let mut shown: String = fields.iter().map(field).collect();
    let mut bytes = shown.clone().into_bytes();
    for file in files {
        let (part, name, media_type) = (quoted(part), quoted(&file.name), &file.media_type);
        let about =
            format!("{begin}\"{part}\"; filename=\"{name}\"\r\nContent-Type: {media_type}\r\n\r\n");
        shown.extend([about.as_str(), &format!("[{} bytes]\r\n", file.bytes.len())]);
        bytes.extend_from_slice(about.as_bytes());
        bytes.extend_from_slice(&file.bytes);
        bytes.extend_from_slice(b"\r\n");
    }
    let end = format!("--{boundary}--\r\n");
    shown.push_str(&end);
    bytes.extend_from_slice(end.as_bytes());
    Form { content_type: format!("multipart/form-data; boundary={boundary}"), bytes, shown }
}

/// A boundary that stands in nothing of the form, the same for the same form.
fn boundary(fields: &[(&str, &str)], files: &[&ReadFile], seed: &str) -> String {
    let mut boundary =
        format!("deskbell-{}", seed.replace(|c: char| !c.is_ascii_alphanumeric(), ""));
    let is_within = |boundary: &str| {
        fields.iter().any(|(_, value)| value.contains(boundary))
            || files.iter().any(|file| {
                file.bytes.windows(boundary.len()).any(|window| window == boundary.as_bytes())
            })
    };
    while is_within(&boundary) {
        boundary.push('x');
    }
    boundary
}

/// `name` between quotes, as browsers write it (HTML, "Multipart form data").
fn quoted(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_cannot_end_the_form_and_a_name_cannot_forge_a_header_row_115() {
        let file = ReadFile {
            name: "a\".txt\r\nX: y".to_owned(),
            media_type: "text/plain".to_owned(),
            bytes: b"\r\n--deskbell-1--\r\n".to_vec(),
        };
        let form = form(&[("chat", "7")], "document", &[&file], "1");
        assert_eq!(form.content_type, "multipart/form-data; boundary=deskbell-1x");
        assert_eq!(
            String::from_utf8(form.bytes).unwrap(),
            "--deskbell-1x\r\nContent-Disposition: form-data; name=\"chat\"\r\n\r\n7\r\n\
             --deskbell-1x\r\nContent-Disposition: form-data; name=\"document\"; filename=\"a%22.txt%0D%0AX: y\"\r\n\
             Content-Type: text/plain\r\n\r\n\r\n--deskbell-1--\r\n\r\n--deskbell-1x--\r\n"
        );
        assert!(form.shown.contains("[18 bytes]") && !form.shown.contains("deskbell-1--\r\n\r\n"));
    }
}
