//! When a wheel may be uploaded beside those that are there.

use crate::name::WheelName;

/// Why a wheel may not be uploaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The package is there in this version, in whatever build and for whatever interpreter.
    #[error("wheel version already exists; bump version")]
    SameVersion,
    /// The package is there in a newer version.
    #[error("wheel version must be greater than existing latest version")]
    OlderVersion,
}

/// Whether a wheel may be uploaded. Versions of a package only ever grow, so that nobody replaces code under a name that
/// somebody has tested. A client's `replace` is not asked for: the same name is the same version, and that is refused either way.
///
/// # Errors
/// When the package is there in the same version or in a newer one. The same version is said first.
pub fn may_upload<'a>(
    existing: impl IntoIterator<Item = &'a WheelName>,
    new: &WheelName,
) -> Result<(), Refused> {
    let mut newer_is_there = false;
    for wheel in existing.into_iter().filter(|wheel| wheel.package() == new.package()) {
        if wheel.version() == new.version() {
            return Err(Refused::SameVersion);
        }
        newer_is_there |= wheel.version() > new.version();
    }
    if newer_is_there { Err(Refused::OlderVersion) } else { Ok(()) }
}
