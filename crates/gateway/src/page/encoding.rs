//! `Accept-Encoding`: in which form a client wants to have something.

use axum::http::{HeaderMap, header};

/// A form of a file, the plainest first: of two that a client likes as well, the later one is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Encoding {
    Identity,
    Gzip,
    Brotli,
}

impl Encoding {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Gzip => "gzip",
            Self::Brotli => "br",
        }
    }

    fn is_named(self, name: &str) -> bool {
        name.eq_ignore_ascii_case(self.as_str())
            || (self == Self::Gzip && name.eq_ignore_ascii_case("x-gzip"))
    }
}

/// What a client says about forms.
pub(super) struct Wishes<'a>(Vec<(&'a str, f32)>);

impl<'a> Wishes<'a> {
    pub(super) fn of(headers: &'a HeaderMap) -> Self {
        let said = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
        Self(said.flat_map(|text| text.split(',')).map(wish).collect())
    }

    /// Which of several it is sent. Whoever wants none of them gets the plain one all the same: there is no better answer.
    pub(super) fn best(&self, of: impl Iterator<Item = Encoding>) -> Encoding {
        let wanted = of.map(|encoding| (self.weight(encoding), encoding)).filter(|(weight, _)| *weight > 0.0);
        let best = wanted.max_by(|(a, one), (b, other)| a.total_cmp(b).then_with(|| one.cmp(other)));
        best.map_or(Encoding::Identity, |(_, encoding)| encoding)
    }

    /// How much it wants one; 0: not at all. What it does not name it does not know, but a plain file can be read by everybody.
    fn weight(&self, encoding: Encoding) -> f32 {
        let of = |is_meant: &dyn Fn(&str) -> bool| {
            self.0.iter().find(|(name, _)| is_meant(name)).map(|(_, weight)| *weight)
        };
        of(&|name| encoding.is_named(name)).or_else(|| of(&|name| name == "*")).unwrap_or(match encoding {
            Encoding::Identity => f32::MIN_POSITIVE,
            Encoding::Gzip | Encoding::Brotli => 0.0,
        })
    }
}

/// A name with its weight. One that cannot be read is none that can be sent.
fn wish(text: &str) -> (&str, f32) {
    let (name, rest) = text.split_once(';').unwrap_or((text, "q=1"));
    let weight = rest.trim().strip_prefix(['q', 'Q']).and_then(|rest| rest.trim().strip_prefix('='));
    let weight = weight.and_then(|number| number.trim().parse::<f32>().ok());
    (name.trim(), weight.filter(|weight| (0.0..=1.0).contains(weight)).unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn best(said: &[&str]) -> Encoding {
        let mut headers = HeaderMap::new();
        for said in said {
            headers.append(header::ACCEPT_ENCODING, HeaderValue::from_str(said).unwrap());
        }
        Wishes::of(&headers).best([Encoding::Gzip, Encoding::Brotli, Encoding::Identity].into_iter())
    }

    #[test]
    fn the_smallest_of_what_a_client_likes_best_is_sent() {
        for (said, wanted) in [
            (&["gzip, deflate, br, zstd"][..], Encoding::Brotli),
            (&["gzip", "br"], Encoding::Brotli),
            (&["GZIP"], Encoding::Gzip),
            (&["x-gzip"], Encoding::Gzip),
            (&["br;q=0.5, gzip;q=0.9"], Encoding::Gzip),
            (&["br; q=0.5 , gzip ;q = 0.4"], Encoding::Brotli),
            (&["*"], Encoding::Brotli),
            (&["br;q=0, *;q=0.1"], Encoding::Gzip),
            (&["gzip;q=0.5, identity"], Encoding::Identity),
        ] {
            assert_eq!(best(said), wanted, "{said:?}");
        }
    }

    #[test]
    fn who_names_no_form_or_none_that_can_be_read_gets_the_plain_one() {
        for said in [
            &[][..],
            &[""],
            &["zstd"],
            &["br;q=0, gzip;q=0"],
            &["br;q=2"],
            &["br;q=NaN"],
            &["br;level=3"],
            &["*;q=0"],
        ] {
            assert_eq!(best(said), Encoding::Identity, "{said:?}");
        }
    }
}
