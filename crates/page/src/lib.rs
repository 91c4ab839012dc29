//! The files of the dashboard, as `npm run build` left them in `dashboard/dist` when this crate was compiled; none if it had not been
//! run. A crate of its own, so that a new page compiles nothing else anew. How they are served is the gateway's affair.

/// A file of the dashboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File {
    /// Its place in the folder: `index.html`, or `static/…`.
    pub name: &'static str,
    /// What is in it.
    pub plain: &'static [u8],
    /// The same, compressed with brotli, if that is smaller.
    pub brotli: Option<&'static [u8]>,
    /// The same, compressed with gzip, if that is smaller.
    pub gzip: Option<&'static [u8]>,
}

/// All of them; none where the page was not built.
pub static FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_there_with_everything_that_it_names_or_not_at_all() {
        let Some(index) = FILES.iter().find(|file| file.name == "index.html") else {
            assert_eq!(FILES, []);
            return;
        };
        let html = std::str::from_utf8(index.plain).unwrap();
        let named: Vec<&str> =
            html.split("=\"/").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        assert!(named.iter().any(|name| name.ends_with(".js")), "{html}");
        for name in named {
            assert!(FILES.iter().any(|file| file.name == name), "{name} is not there");
        }
    }

    #[test]
    fn a_compressed_form_is_smaller_and_stands_for_no_file_of_its_own() {
        for File { name, plain, brotli, gzip } in FILES {
            assert!(!name.ends_with(".br") && !name.ends_with(".gz"), "{name}");
            for form in [brotli, gzip].into_iter().flatten() {
                assert!(form.len() < plain.len(), "{name}");
            }
        }
    }
}
