//! What the product says to people: each notice has an error id, a message id and a text, as the contract numbers them.
//!
//! Not here: the English details that come with a notice; they are said where it happens.

/// Something that a user or an operator is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Notice {
    /// The gateway cannot be reached.
    GatewayUnreachable,
    /// The request is not valid.
    InvalidRequest,
    /// The store cannot be reached.
    StoreUnavailable,
    /// A run may be left behind although it was not accepted.
    OrphanPossible,
    /// There is no such run.
    RunNotFound,
    /// No worker here knows the flow.
    FlowNotFound,
    /// The run failed.
    ExecutionFailed,
    /// The end of a run could not be recorded.
    EndNotRecorded,
    /// The lease of a job could not be extended.
    LeaseNotExtended,
    /// A snapshot is larger than it may be.
    SnapshotTooLarge,
    /// A dead letter could not be kept.
    DeadLetterLost,
    /// A job message makes no sense.
    InvalidJob,
    /// The log cannot be written.
    LoggingFailed,
    /// An API key is needed.
    KeyRequired,
    /// The API key is not valid.
    KeyInvalid,
    /// The workflow file is too large.
    WorkflowTooLarge,
    /// A list was asked for in a way that makes no sense.
    InvalidListQuery,
    /// Command line arguments are not valid.
    InvalidArguments,
    /// Workers were asked for in a way that makes no sense.
    InvalidWorkersRequest,
    /// There is no such worker.
    WorkerNotFound,
    /// A cancelled run does not end.
    CancelTimeout,
    /// A wheel of that version, or a newer one, is there.
    WheelVersionConflict,
    /// There is no such wheel.
    WheelNotFound,
    /// Wheels could not be brought to a worker.
    WheelSyncFailed,
}

impl Notice {
    /// Its place in the contract's numbering.
    const fn number(self) -> u8 {
        self as u8 + 1
    }

    /// `ERR-PYOCO-…`.
    pub fn err_id(self) -> String {
        format!("ERR-PYOCO-{:04}", self.number())
    }

    /// `MSG-PYOCO-…`.
    pub fn msg_id(self) -> String {
        format!("MSG-PYOCO-{:04}", self.number())
    }

    /// The text of the message.
    pub const fn text(self) -> &'static str {
        match self {
            Self::GatewayUnreachable => "稼働確認に失敗しました",
            Self::InvalidRequest => "リクエストが不正です",
            Self::StoreUnavailable => "NATSが利用できません",
            Self::OrphanPossible => "孤児runが残っている可能性があります（best-effort cleanup失敗）",
            Self::RunNotFound => "runが見つかりません",
            Self::FlowNotFound => "flowが見つかりません",
            Self::ExecutionFailed => "実行に失敗しました",
            Self::EndNotRecorded => "terminal状態の記録に失敗しました",
            Self::LeaseNotExtended => "in_progress ACK の送信に失敗しました",
            Self::SnapshotTooLarge => "スナップショットが大きすぎます",
            Self::DeadLetterLost => "DLQへのpublishに失敗しました（best-effort）",
            Self::InvalidJob => "不正なジョブを受信しました",
            Self::LoggingFailed => "ログ出力に失敗しました（best-effort）",
            Self::KeyRequired => "API key が必要です",
            Self::KeyInvalid => "API key が無効です",
            Self::WorkflowTooLarge => "ワークフローファイルが大きすぎます",
            Self::InvalidListQuery => "一覧クエリが不正です",
            Self::InvalidArguments => "CLI引数が不正です（入力形式を確認してください）",
            Self::InvalidWorkersRequest => "workersリクエストが不正です",
            Self::WorkerNotFound => "workerが見つかりません",
            Self::CancelTimeout => "取消が制限時間内に収束しませんでした",
            Self::WheelVersionConflict => "wheelのバージョンが競合しています",
            Self::WheelNotFound => "wheelが見つかりません",
            Self::WheelSyncFailed => "wheelの同期に失敗しました",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_carry_the_numbers_of_the_contract() {
        let numbered = [
            (Notice::GatewayUnreachable, "0001"),
            (Notice::StoreUnavailable, "0003"),
            (Notice::InvalidJob, "0012"),
            (Notice::WorkflowTooLarge, "0016"),
            (Notice::InvalidListQuery, "0017"),
            (Notice::CancelTimeout, "0021"),
            (Notice::WheelSyncFailed, "0024"),
        ];
        for (notice, number) in numbered {
            assert_eq!(notice.err_id(), format!("ERR-PYOCO-{number}"));
            assert_eq!(notice.msg_id(), format!("MSG-PYOCO-{number}"));
        }
    }
}
