//! `nats-bootstrap`: looks after nats-servers. What is done is in `pyoco-bootstrap`; here are arguments, output and exit codes.
//!
//! - `binary` finds the program, `place` says where NATS is and who we are there
//! - `up` starts servers, `wish` is what is wanted of them, `joined` looks whether they have found the others, `down` stops one, `leave` takes one out of its cluster, `controller` does that for others
//! - `status` and `doctor` look, `raise` gives streams more copies, `backup` copies and restores, `service` is for systemd

mod arguments;
mod backup;
mod binary;
mod controller;
mod doctor;
mod down;
mod joined;
mod leave;
mod place;
mod raise;
mod service;
mod status;
mod up;
mod wish;

use std::ffi::OsString;
use std::process::ExitCode;

pub(crate) use self::binary::{how_to_install, places};
use pyoco_core::time::Timestamp;
use pyoco_server::{Clock as _, SystemClock};

use self::arguments::{Command, ControllerCommand, Options};
use crate::errors::{Failure, conclude};
use crate::{arguments as parsing, foreground, output};

/// Bad arguments, a missing confirmation, or something that is not there: as the original.
const MISSING: u8 = 2;
/// Where a server keeps its things when nobody says where.
const FOLDER: &str = "nats-bootstrap-data";

/// The whole program.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let options = match parsing::parse::<Options>(arguments) {
        Ok(Some(options)) => options,
        Ok(None) => return ExitCode::SUCCESS,
        Err(failure) => return conclude(Err(failure.exiting(MISSING))),
    };
    let Options { common, command } = options;
    match command {
        // These hear signals themselves: a server has to be told.
        Command::Up(up) => up::run(async move { up::up(&common, *up).await }),
        Command::Start(up) => {
            output::aside("start is the old name of up");
            up::run(async move { up::up(&common, *up).await })
        }
        Command::Join(join) => up::run(async move { up::join(&common, *join).await }),
        Command::Controller(ControllerCommand::Start(start)) => {
            up::run(async move { controller::start(&start).await })
        }
        Command::Status(status) => {
            conclude(foreground::run(async move { status::show(&common, &status).await }))
        }
        Command::Doctor(doctor) => {
            conclude(foreground::run(async move { doctor::examine(&common, &doctor).await }))
        }
        Command::Raise(raise) => conclude(foreground::run(async move { raise::run(&common, &raise).await })),
        Command::Backup(backup) => {
            conclude(foreground::run(async move { backup::make(&common, &backup).await }))
        }
        Command::Restore(restore) => {
            conclude(foreground::run(async move { backup::restore(&common, &restore).await }))
        }
        Command::Leave(leave) => conclude(foreground::run(async move { leave::run(&common, &leave).await })),
        Command::Down(down) => conclude(foreground::run(async move { down::run(&common, &down).await })),
        Command::Service(service) => conclude(service::run(&common, service)),
    }
}

fn now() -> Timestamp {
    SystemClock.now()
}

/// A failure in the words of the original, with what to do.
fn refused(title: impl Into<String>) -> Failure {
    Failure::new(title).exiting(MISSING)
}

/// Something that was to be confirmed and was not.
fn unconfirmed(command: &str) -> Failure {
    refused(format!("{command} requires --confirm"))
}
