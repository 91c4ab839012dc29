//! What an operator chooses about the dashboard: its language, and whether it may change anything.

use pyoco_gateway::Language;

use super::settings::Settings;

/// Where a process finds the language of its system, the most important first.
const LOCALE: [&str; 4] = ["LC_ALL", "LANGUAGE", "LC_MESSAGES", "LANG"];

/// The settings of the dashboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DashboardConfig {
    /// The language that was chosen; nothing: the system's (`PYOCO_DASHBOARD_LANG`).
    pub chosen: Option<Language>,
    /// The language of the system.
    pub system: Language,
    /// Whether it offers to cancel, retry, answer and hide (`PYOCO_DASHBOARD_ACTIONS`).
    pub has_actions: bool,
}

impl DashboardConfig {
    pub(super) fn read(from: &mut Settings) -> Self {
        let choices = [("auto", None), ("ja", Some(Language::Japanese)), ("en", Some(Language::English))];
        let mut said = LOCALE.iter().filter_map(|name| from.environment(name)).filter_map(language);
        Self {
            system: said.next().unwrap_or_default(),
            chosen: from.choice("PYOCO_DASHBOARD_LANG", &choices, None),
            has_actions: from.flag("PYOCO_DASHBOARD_ACTIONS"),
        }
    }

    /// The language that the dashboard begins with.
    pub fn language(&self) -> Language {
        self.chosen.unwrap_or(self.system)
    }
}

/// The language of a locale such as `ja_JP.UTF-8`, if the dashboard has it.
fn language(locale: &str) -> Option<Language> {
    let is = |language: Language| {
        let rest = locale.strip_prefix(language.as_str());
        rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_alphabetic()))
    };
    [Language::Japanese, Language::English].into_iter().find(|language| is(*language))
}

#[cfg(test)]
mod tests {
    use super::super::{Config, InvalidConfig};
    use super::*;

    fn begins_with(vars: &[(&str, &str)]) -> Language {
        let quiet = [("PYOCO_LOAD_DOTENV", "0")];
        let vars = quiet.iter().chain(vars).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Config::from_vars(vars.collect()).unwrap().dashboard.language()
    }

    #[test]
    fn the_first_locale_with_a_language_of_the_page_counts() {
        for locale in
            [("LANG", "ja_JP.UTF-8"), ("LC_ALL", "ja"), ("LANGUAGE", "ja:en"), ("LC_MESSAGES", "ja.UTF-8")]
        {
            assert_eq!(begins_with(&[locale]), Language::Japanese, "{locale:?}");
        }
        assert_eq!(begins_with(&[("LC_ALL", "en_GB.UTF-8"), ("LANG", "ja_JP.UTF-8")]), Language::English);
        assert_eq!(begins_with(&[("LC_ALL", "C.UTF-8"), ("LANG", "ja_JP.UTF-8")]), Language::Japanese);
        for none in [&[][..], &[("LANG", "C")], &[("LANG", "de_DE.UTF-8")], &[("LANG", "jam_JM")]] {
            assert_eq!(begins_with(none), Language::English, "{none:?}");
        }
    }

    #[test]
    fn a_language_that_the_page_does_not_have_is_a_mistake() {
        let vars =
            [("PYOCO_LOAD_DOTENV", "0"), ("PYOCO_DASHBOARD_LANG", "tlh"), ("PYOCO_DASHBOARD_ACTIONS", "2")];
        let vars = vars.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let InvalidConfig(mistakes) = Config::from_vars(vars.into_iter().collect()).unwrap_err();
        assert_eq!(
            mistakes,
            [
                "PYOCO_DASHBOARD_LANG must be one of auto, ja, en; or leave it out for auto",
                "PYOCO_DASHBOARD_ACTIONS must be one of 1, true, yes, on, 0, false, no, off; or leave it out for 0",
            ]
        );
    }

    #[test]
    fn what_was_chosen_wins_over_the_locale() {
        let japan = ("LANG", "ja_JP.UTF-8");
        assert_eq!(begins_with(&[japan, ("PYOCO_DASHBOARD_LANG", "EN")]), Language::English);
        assert_eq!(begins_with(&[japan, ("PYOCO_DASHBOARD_LANG", "auto")]), Language::Japanese);
        assert_eq!(begins_with(&[("PYOCO_DASHBOARD_LANG", "ja")]), Language::Japanese);
    }
}
