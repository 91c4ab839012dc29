//! The wire types of the HTTP surface: what requests and answers look like, for the gateway that speaks and the client that
//! listens. Nothing here does anything; rules are in `pyoco-core`, routes in `pyoco-gateway`.
