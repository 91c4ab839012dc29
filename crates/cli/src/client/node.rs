//! `node`: what a worker of another kind, or a person, says about a node.

use pyoco_client::Client;
use pyoco_client::api::{
    ErrorInfo, Extra, FailNode, PutWaiting, ReportProgress, ResumeNode, StartNode, SucceedNode, Why,
};

use super::options::node::{Fail, NodeCommand, Place};
use super::{command, params};
use crate::errors::Failure;

pub(super) async fn run(client: &Client, command: NodeCommand) -> Result<(), Failure> {
    match command {
        NodeCommand::Start(options) => {
            let Place { execution_id, node_id } = options.place;
            let request = StartNode { attempt: options.attempt, worker_id: options.worker_id };
            let sent = command::options(options.sending);
            command::show(client.start_node(&execution_id, &node_id, &request, &sent).await)
        }
        NodeCommand::Progress(options) => {
            let Place { execution_id, node_id } = options.place;
            let metrics = params::object("--metrics", options.metrics.as_ref())?;
            let request = ReportProgress { progress: options.progress, message: options.message, metrics };
            let sent = command::options(options.sending);
            command::show(client.report_progress(&execution_id, &node_id, &request, &sent).await)
        }
        NodeCommand::Wait(options) => {
            let Place { execution_id, node_id } = options.place;
            let prompt = params::object("--prompt", options.prompt.as_ref())?;
            let request = PutWaiting { wait_key: options.key, prompt };
            let sent = command::options(options.sending);
            command::show(client.put_node_waiting(&execution_id, &node_id, &request, &sent).await)
        }
        NodeCommand::Resume(options) => {
            let Place { execution_id, node_id } = options.place;
            let output = params::value("--output", options.output.as_ref())?;
            let request = ResumeNode { resume_key: options.key, output };
            let sent = command::options(options.sending);
            command::show(client.resume_node(&execution_id, &node_id, &request, &sent).await)
        }
        NodeCommand::Success(options) => {
            let Place { execution_id, node_id } = options.place;
            let output = params::value("--output", options.output.as_ref())?;
            let request = SucceedNode { output, attempt: options.attempt };
            let sent = command::options(options.sending);
            command::show(client.succeed_node(&execution_id, &node_id, &request, &sent).await)
        }
        NodeCommand::Fail(options) => fail(client, options).await,
        NodeCommand::Cancel(options) => {
            let Place { execution_id, node_id } = options.place;
            let (why, sent) = (Why { reason: options.why.reason }, command::options(options.sending));
            command::show(client.cancel_node(&execution_id, &node_id, &why, &sent).await)
        }
    }
}

async fn fail(client: &Client, options: Fail) -> Result<(), Failure> {
    let Place { execution_id, node_id } = options.place;
    let detail = params::object("--detail", options.detail.as_ref())?;
    let error = ErrorInfo { code: options.code, message: options.message, detail, extra: Extra::new() };
    let error = Some(error).filter(|error| *error != ErrorInfo::default());
    let request = FailNode { error, attempt: options.attempt };
    let sent = command::options(options.sending);
    command::show(client.fail_node(&execution_id, &node_id, &request, &sent).await)
}
