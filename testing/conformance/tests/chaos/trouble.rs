//! What goes wrong.

use std::time::Duration;

use kubewire_apiserver::{ApiServer, Matching};
use tokio_util::sync::CancellationToken;

use crate::dice::Dice;
use crate::faults;
use crate::restores::Restores;

/// Faults that wait for a request, at most: the client backs off, and would meet nothing but faults.
const FAULTS_MAX: usize = 5;

pub(crate) struct Trouble {
    pub(crate) server: ApiServer,
    pub(crate) restores: Restores,
    /// Whether clients notice that a watch is silent.
    pub(crate) silence: bool,
    pub(crate) dice: Dice,
    pub(crate) stop: CancellationToken,
}

impl Trouble {
    /// Makes trouble until it is stopped; then the server is well again, but for faults that wait.
    pub(crate) async fn make(mut self) {
        let longest = Duration::from_secs(8);
        while self.passes(longest).await {
            self.once().await;
            if self.dice.chance(0.04) {
                // Calm: time for what is rare without trouble, such as a bookmark.
                self.passes(Duration::from_secs(90)).await;
            }
        }
    }

    /// Some time goes by. Whether the trouble is to go on.
    async fn passes(&mut self, longest: Duration) -> bool {
        self.stop.run_until_cancelled(tokio::time::sleep(self.dice.up_to(longest))).await.is_some()
    }

    async fn once(&mut self) {
        let server = self.server.clone();
        match self.dice.below(24) {
            0 => server.close_watches(),
            1 => server.reset_watches(),
            2 => {
                // Who is away now has missed too much.
                server.skip_resource_versions(1);
                server.compact();
                server.reset_watches();
            }
            3 => server.skip_resource_versions(self.dice.below(1000)),
            4 if self.dice.chance(0.3) => {
                server.forbid(Matching::any());
                server.reset_watches();
                self.passes(Duration::from_secs(40)).await;
                server.allow_all();
            }
            5 if self.dice.chance(0.3) => {
                server.require_token("another", "somebody");
                server.close_watches();
                self.passes(Duration::from_secs(40)).await;
                server.allow_all();
            }
            6 if self.dice.chance(0.4) => {
                server.go_down().await;
                self.passes(Duration::from_secs(60)).await;
                server.come_back().await;
            }
            7 if self.dice.chance(0.4) => self.restores.restore(&server, &mut self.dice, &self.stop).await,
            _ if server.faults_left() < FAULTS_MAX => {
                server.fault(faults::any(&mut self.dice, self.silence));
                // Most faults wait for a request, some for a list.
                match self.dice.below(6) {
                    0..=2 => server.close_watches(),
                    3 => {
                        server.skip_resource_versions(1);
                        server.compact();
                        server.reset_watches();
                    }
                    _ => {}
                }
            }
            _ => server.close_watches(),
        }
    }
}
