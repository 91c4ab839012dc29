//! The table of routes: where each leads, and what its caller needs. The router, the door, the description and the tests all read
//! this one; a route that is not in it does not exist.

use std::collections::HashMap;
use std::convert::Infallible;

use axum::handler::Handler;
use axum::http::Method;
use axum::routing::MethodRouter;
use pyoco_core::access::Role;

use crate::{
    App, audit, docs, executions, graphs, health, jobs, metrics, page, runs, tags, waits, wheels, workers,
};

/// One kind of request, and what its caller needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteInfo {
    /// Where it is, with the names of what varies in braces.
    pub path: &'static str,
    /// How it is asked for. `HEAD` needs what `GET` needs.
    pub method: Method,
    /// The smallest role that may; anybody, also without a key, when there is none.
    pub needs: Option<Role>,
    /// What the audit trail calls it, if it may change something.
    pub action: Option<&'static str>,
}

/// A path, with what is there for each method.
pub(crate) struct Route {
    pub(crate) path: &'static str,
    pub(crate) methods: MethodRouter<App>,
    lines: Vec<Line>,
}

/// What is there for a method.
#[derive(Clone)]
struct Line {
    method: Method,
    needs: Option<Role>,
    action: Option<Action>,
}

/// What may change something, for the audit trail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Action {
    /// What it is called there.
    pub(crate) name: &'static str,
    /// Whether its entry is written before it is answered. No log has it otherwise.
    pub(crate) is_written_first: bool,
}

impl Route {
    /// Nothing is here yet.
    pub(crate) fn at(path: &'static str) -> Self {
        Self { path, methods: MethodRouter::new(), lines: Vec::new() }
    }

    /// Looking takes the smallest role there is.
    pub(crate) fn get<T: 'static>(self, handler: impl Handler<T, App>) -> Self {
        self.with(Method::GET, Role::Read, None, |methods| methods.get(handler))
    }

    fn post<T: 'static>(self, action: &'static str, handler: impl Handler<T, App>) -> Self {
        self.with(Method::POST, Role::Submit, Some(action), |methods| methods.post(handler))
    }

    fn put<T: 'static>(self, action: &'static str, handler: impl Handler<T, App>) -> Self {
        self.with(Method::PUT, Role::Submit, Some(action), |methods| methods.put(handler))
    }

    fn patch<T: 'static>(self, action: &'static str, handler: impl Handler<T, App>) -> Self {
        self.with(Method::PATCH, Role::Submit, Some(action), |methods| methods.patch(handler))
    }

    fn delete<T: 'static>(self, action: &'static str, handler: impl Handler<T, App>) -> Self {
        self.with(Method::DELETE, Role::Submit, Some(action), |methods| methods.delete(handler))
    }

    /// For everybody, also without a key.
    pub(crate) fn public(mut self) -> Self {
        self.lines.iter_mut().for_each(|line| line.needs = None);
        self
    }

    /// Only for those who run the place.
    fn admin(mut self) -> Self {
        self.lines.iter_mut().for_each(|line| line.needs = Some(Role::Admin));
        self
    }

    /// Its changes stand in the audit trail before they are answered.
    fn written_first(mut self) -> Self {
        let actions = self.lines.iter_mut().filter_map(|line| line.action.as_mut());
        actions.for_each(|action| action.is_written_first = true);
        self
    }

    fn with(
        mut self,
        method: Method,
        role: Role,
        action: Option<&'static str>,
        add: impl FnOnce(MethodRouter<App>) -> MethodRouter<App, Infallible>,
    ) -> Self {
        self.methods = add(self.methods);
        let action = action.map(|name| Action { name, is_written_first: false });
        self.lines.push(Line { method, needs: Some(role), action });
        self
    }

    /// Its lines of the table.
    pub(crate) fn lines(&self) -> impl Iterator<Item = RouteInfo> {
        let path = self.path;
        self.lines.iter().map(move |Line { method, needs, action }| RouteInfo {
            path,
            method: method.clone(),
            needs: *needs,
            action: action.map(|action| action.name),
        })
    }
}

/// All of them.
pub(crate) fn table() -> Vec<RouteInfo> {
    api().iter().chain(&page::routes()).chain(&docs::routes()).flat_map(Route::lines).collect()
}

/// What each route needs, to be looked up at every request.
pub(crate) struct Needs(HashMap<&'static str, Vec<(Method, Option<Role>)>>);

impl Needs {
    pub(crate) fn of_all() -> Self {
        let mut needs = HashMap::<_, Vec<_>>::new();
        for RouteInfo { path, method, needs: role, .. } in table() {
            needs.entry(path).or_default().push((method, role));
        }
        Self(needs)
    }

    /// The role that a request takes; none if it is for everybody. What is not in the table is for nobody without a key, and a
    /// change there takes what every change takes.
    pub(crate) fn of(&self, path: Option<&str>, method: &Method) -> Option<Role> {
        let is_look = method.is_safe();
        let asked = if *method == Method::HEAD { &Method::GET } else { method };
        let known = path.and_then(|path| self.0.get(path));
        match known.and_then(|methods| methods.iter().find(|(known, _)| known == asked)) {
            Some((_, role)) => *role,
            // A method that a public path does not have: that is told to everybody.
            None if known.is_some_and(|methods| methods.iter().all(|(_, role)| role.is_none())) => None,
            None if is_look => Some(Role::Read),
            None => Some(Role::Submit),
        }
    }
}

/// What each change is called, to be looked up at every request.
pub(crate) struct Actions(HashMap<&'static str, Vec<Line>>);

impl Actions {
    pub(crate) fn of_all() -> Self {
        let changes = api().into_iter().filter(|route| route.lines.iter().any(|line| line.action.is_some()));
        Self(changes.map(|route| (route.path, route.lines)).collect())
    }

    /// What a request is called; nothing if it only looks, or leads nowhere.
    pub(crate) fn of(&self, path: Option<&str>, method: &Method) -> Option<Action> {
        self.0.get(path?)?.iter().find(|line| line.method == *method)?.action
    }
}

/// What the gateway is for. The description of it is `docs`', the dashboard `page`'s.
pub(crate) fn api() -> Vec<Route> {
    let at = Route::at;
    vec![
        at("/health").get(health::health).public(),
        at("/metrics").get(metrics::metrics),
        at("/runs").get(runs::list::list).post("runs.submit", runs::submit::submit),
        at("/runs/yaml")
            .post("runs.submit_yaml", runs::submit_yaml::submit_yaml)
            .get(runs::get::get_named_yaml),
        at("/runs/watch").get(runs::changes::watch),
        at("/runs/{run_id}").get(runs::get::get),
        at("/runs/{run_id}/tasks").get(runs::tasks::tasks),
        at("/runs/{run_id}/plan").get(runs::plan::plan),
        at("/runs/{run_id}/explain").get(runs::explain::explain),
        at("/runs/{run_id}/watch").get(runs::watch::watch),
        at("/runs/{run_id}/cancel").post("runs.cancel", runs::cancel::cancel),
        at("/runs/{run_id}/logs").get(runs::logs::get),
        at("/runs/{run_id}/logs/stream").get(runs::logs::stream),
        at("/jobs").get(jobs::list::list).post("jobs.submit", jobs::create::create),
        at("/jobs/{id}").get(jobs::get::get).delete("jobs.delete", jobs::delete::delete),
        at("/jobs/{id}/logs").get(jobs::logs::get),
        at("/jobs/{id}/logs/stream").get(jobs::logs::stream),
        // To cancel over it takes more than to open it; the session sees to that.
        at("/jobs/{id}/ws").get(jobs::socket::open),
        at("/jobs/{id}/tags").get(tags::job::list).post("jobs.tag.add", tags::job::add),
        at("/jobs/{id}/tags/{tag}").delete("jobs.tag.remove", tags::job::remove),
        at("/tags").get(tags::list::list),
        at("/executions").get(executions::list::list).post("executions.create", executions::create::create),
        at("/executions/bulk").post("executions.bulk", executions::bulk::bulk),
        at("/executions/{executionId}").get(executions::get::get),
        at("/executions/{executionId}/start").post("executions.start", executions::commands::start),
        at("/executions/{executionId}/cancel").post("executions.cancel", executions::commands::cancel),
        at("/executions/{executionId}/archive").post("executions.archive", executions::commands::archive),
        at("/executions/{executionId}/retry").post("executions.retry", executions::retry::retry),
        at("/executions/{executionId}/events").get(executions::events::events),
        at("/executions/{executionId}/events/stream").get(executions::stream::stream),
        at("/executions/{executionId}/nodes/{nodeId}/start")
            .post("executions.node.start", executions::nodes::start),
        at("/executions/{executionId}/nodes/{nodeId}/progress")
            .post("executions.node.progress", executions::nodes::progress),
        at("/executions/{executionId}/nodes/{nodeId}/wait")
            .post("executions.node.wait", executions::nodes::wait),
        at("/executions/{executionId}/nodes/{nodeId}/resume")
            .post("executions.node.resume", executions::nodes::resume),
        at("/executions/{executionId}/nodes/{nodeId}/success")
            .post("executions.node.success", executions::nodes::success),
        at("/executions/{executionId}/nodes/{nodeId}/fail")
            .post("executions.node.fail", executions::nodes::fail),
        at("/executions/{executionId}/nodes/{nodeId}/cancel")
            .post("executions.node.cancel", executions::nodes::cancel),
        at("/graphs").get(graphs::list::list),
        at("/graphs/{graphId}")
            .get(graphs::get::get)
            .put("graphs.put", graphs::put::put)
            .delete("graphs.delete", graphs::delete::delete),
        at("/waits").get(waits::list),
        at("/workers").get(workers::list),
        at("/workers/{worker_id}").patch("workers.hide", workers::hide).written_first(),
        // Where changing them takes more than it takes elsewhere, their handlers see to that.
        at("/wheels").get(wheels::list::list).post("wheels.upload", wheels::upload::upload).written_first(),
        at("/wheels/history").get(wheels::history::history),
        at("/wheels/{wheel_name}")
            .get(wheels::download::download)
            .delete("wheels.delete", wheels::delete::delete)
            .written_first(),
        at("/audit").get(audit::list::list).admin(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_for_everybody_is_exactly_this() {
        let public: Vec<&str> =
            table().iter().filter(|route| route.needs.is_none()).map(|route| route.path).collect();
        assert_eq!(
            public,
            ["/health", "/", "/static/{*path}", "/openapi.json", "/docs/{*path}", "/docs", "/docs/"]
        );
    }

    #[test]
    fn to_look_takes_the_role_read_and_to_change_submit_and_to_see_who_did_what_admin() {
        for RouteInfo { path, method, needs, .. } in table() {
            let wanted = match path {
                "/audit" => Role::Admin,
                _ if method == Method::GET => Role::Read,
                _ => Role::Submit,
            };
            assert!(needs.is_none_or(|needs| needs == wanted), "{method} {path}: {needs:?}");
        }
    }

    #[test]
    fn every_change_has_a_name_of_its_own_and_no_look_has_one() {
        let mut names = std::collections::BTreeSet::new();
        let actions = Actions::of_all();
        for RouteInfo { path, method, action, .. } in table() {
            assert_eq!(action.is_none(), method.is_safe(), "{method} {path}");
            assert_eq!(actions.of(Some(path), &method).map(|action| action.name), action);
            assert!(action.is_none_or(|name| names.insert(name)), "{method} {path}: {action:?}");
        }
        assert!(
            actions.of(Some("/runs/"), &Method::POST).is_none() && actions.of(None, &Method::POST).is_none()
        );
        let first = [
            ("/workers/{worker_id}", Method::PATCH),
            ("/wheels", Method::POST),
            ("/wheels/{wheel_name}", Method::DELETE),
        ];
        for (path, method) in first {
            assert!(actions.of(Some(path), &method).unwrap().is_written_first, "{method} {path}");
        }
    }

    #[test]
    fn what_is_not_in_the_table_is_for_nobody_without_a_key() {
        let needs = Needs::of_all();
        let of = |path, method: &str| needs.of(path, &method.parse().unwrap());
        assert_eq!(of(Some("/health"), "GET"), None);
        assert_eq!(of(Some("/health"), "HEAD"), None);
        assert_eq!(of(Some("/health"), "DELETE"), None, "that it has no such method is no secret");
        assert_eq!(of(Some("/runs"), "HEAD"), Some(Role::Read));
        assert_eq!(of(Some("/runs"), "POST"), Some(Role::Submit));
        for path in [None, Some("/runs/"), Some("/health/"), Some("/healthy"), Some("")] {
            assert_eq!(of(path, "GET"), Some(Role::Read), "{path:?}");
            assert_eq!(of(path, "POST"), Some(Role::Submit), "{path:?}");
            assert_eq!(of(path, "BREW"), Some(Role::Submit), "{path:?}");
        }
    }
}
