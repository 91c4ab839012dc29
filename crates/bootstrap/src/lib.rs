//! Looking after nats-servers, for people who are not experts of them.
//!
//! - `find` looks for the program, `version` says which versions are known to be bad
//! - `folder` is where a server keeps its things, `credentials` who may enter, `conf` the text of its configuration, `plan` a file that
//!   says how it is to be
//! - `pidfile` says which process is ours, `ports` who has a port, `process` starts and stops, `supervise` starts again what ended
//! - `setup` prepares all that before a start
//! - `seed` is what a server of a cluster says to whoever wants to join
//! - `monitor` asks servers, `facts` is what they told, `doctor` what that means
//! - `controller` takes servers out of a cluster for others, `leaving` asks one to, `s2` reads the form of a copy of a stream, `unit` is the text for systemd
//!
//! Not here: arguments and output (the command line), and what stands in NATS (`pyoco-store-nats`).

pub mod conf;
pub mod controller;
pub mod credentials;
pub mod doctor;
pub mod facts;
pub mod find;
pub mod folder;
pub mod leaving;
pub mod monitor;
pub mod pidfile;
pub mod plan;
pub mod ports;
pub mod process;
pub mod s2;
pub mod seed;
pub mod setup;
pub mod supervise;
pub mod unit;
pub mod version;
