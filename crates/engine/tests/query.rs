//! Looking at executions.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]
#![allow(dead_code, reason = "the deployment has more than a look needs")]

use pyoco_core::command::{Issuer, Request};
use pyoco_core::event::Actor;
use pyoco_core::ids::ExecutionId;
use pyoco_core::view::RunStatus;
use pyoco_testkit::{cancel, create};

use pyoco_testing_deployment::Deployment;

#[tokio::test]
async fn a_look_sees_what_another_process_wrote() {
    let deployment = Deployment::new();
    let (here, there) = (deployment.engine(), deployment.engine());
    let run = ExecutionId::new("e").unwrap();
    let ask = |command: pyoco_core::command::Command| {
        let at = pyoco_engine::Clock::now(&*deployment.hands);
        Request::new(Issuer::Caller(Actor::SYSTEM), at, command)
    };
    there.command(&run, &ask(create().into())).await.unwrap();
    assert_eq!(here.look(&run, RunStatus::of).await.unwrap(), Some(RunStatus::Pending));
    there.command(&run, &ask(cancel().into())).await.unwrap();
    assert_eq!(here.look(&run, RunStatus::of).await.unwrap(), Some(RunStatus::Cancelled));
}

#[tokio::test]
async fn there_is_nothing_to_see_of_what_does_not_exist() {
    let engine = Deployment::new().engine();
    let seen = engine.look(&ExecutionId::new("nobody").unwrap(), |state| state.version).await.unwrap();
    assert_eq!(seen, None);
}
