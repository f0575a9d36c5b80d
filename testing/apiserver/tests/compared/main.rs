//! The embedded server beside a real kube-apiserver, on the same requests: `requests.txt`.
//!
//! `answers.jsonl` has what the real one answered. The test plays the requests to the embedded server and compares. With
//! `KUBEWIRE_REAL_KUBECONFIG` set (`testing/realcluster/check_apply.sh` does it) they are played to a fresh real server too, whose
//! answers must be the recorded ones; with `UPDATE=1` they are recorded anew.
//!
//! Compared are the status, reason and causes of a failure, the object, how its version moved, and who manages which fields.
//! `defaults.txt` has the fields that one server fills in and the other does not, `accepted.txt` the differences that stay, each
//! with its reason; one that is not met any more fails the test too.

mod answer;
mod player;
mod request;

use std::collections::BTreeMap;
use std::path::PathBuf;

use answer::Answer;
use kubewire_apiserver::{ApiServer, Resource};
use player::Player;
use request::Request;
use serde_json::Value;

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/compared").join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The lines of a table, without comments, cut at bars.
fn table(name: &str) -> Vec<Vec<String>> {
    let text = read(name);
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

async fn embedded() -> (ApiServer, Player) {
    let definition: Value = serde_json::from_str(&read("definition.json")).unwrap();
    let things = Resource::from_definition(&definition).unwrap();
    let server = ApiServer::builder().custom_resource(things).start().await.unwrap();
    let client = kube_client::Client::new(server.service(), "default");
    (server, Player::new(client))
}

async fn real(kubeconfig: &str) -> Player {
    let kubeconfig = kube_client::config::Kubeconfig::read_from(kubeconfig).unwrap();
    let config = kube_client::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
    let player = Player::new(kube_client::Client::try_from(config).unwrap());
    player.define(read("definition.json")).await;
    player
}

async fn play(mut player: Player, requests: &[Request]) -> Vec<Answer> {
    let mut answers = Vec::new();
    for request in requests {
        answers.push(player.play(request).await);
    }
    answers
}

fn recorded() -> BTreeMap<String, Answer> {
    let lines = read("answers.jsonl");
    lines.lines().map(|line| serde_json::from_str::<Answer>(line).unwrap()).map(|a| (a.name.clone(), a)).collect()
}

#[tokio::test]
async fn the_embedded_server_answers_as_the_real_one() {
    let requests = Request::parse(&read("requests.txt"));
    let defaults = table("defaults.txt");
    if let Ok(kubeconfig) = std::env::var("KUBEWIRE_REAL_KUBECONFIG") {
        let answers = play(real(&kubeconfig).await, &requests).await;
        if std::env::var_os("UPDATE").is_some() {
            let lines: Vec<String> = answers.iter().map(|answer| serde_json::to_string(answer).unwrap()).collect();
            std::fs::write(file("answers.jsonl"), lines.join("\n") + "\n").unwrap();
        }
        let recorded = recorded();
        for answer in &answers {
            let before = recorded.get(&answer.name).unwrap_or_else(|| panic!("{}: not recorded", answer.name));
            for (aspect, before, now) in before.compared(answer, &defaults) {
                assert_eq!(before, now, "{}: {aspect}: not as recorded; UPDATE=1 records it anew", answer.name);
            }
        }
        println!("{} requests to the real server: as recorded", answers.len());
    }

    let recorded = recorded();
    assert_eq!(recorded.len(), requests.len(), "each request has one recorded answer");
    let mut accepted: BTreeMap<(String, String), String> = BTreeMap::new();
    for row in table("accepted.txt") {
        let [names, aspect, reason] = &row[..] else { panic!("{row:?}") };
        for name in names.split_whitespace() {
            assert!(accepted.insert((name.to_owned(), aspect.clone()), reason.clone()).is_none(), "{name} twice");
        }
    }
    let (_server, player) = embedded().await;
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for ours in play(player, &requests).await {
        let theirs = recorded.get(&ours.name).unwrap_or_else(|| panic!("{}: not recorded", ours.name));
        for (aspect, theirs, ours_is) in theirs.compared(&ours, &defaults) {
            compared += 1;
            let is_accepted = accepted.remove(&(ours.name.clone(), aspect.to_owned())).is_some();
            match theirs == ours_is {
                true if is_accepted => wrong.push(format!("{}: {aspect}: accepted, but the same", ours.name)),
                false if !is_accepted => {
                    wrong.push(format!("{}: {aspect}\n  real:     {theirs}\n  embedded: {ours_is}", ours.name));
                }
                _ => {}
            }
        }
    }
    wrong.extend(accepted.keys().map(|(name, aspect)| format!("{name}: {aspect}: accepted, but not compared")));
    assert!(wrong.is_empty(), "{} differences of {compared}:\n{}", wrong.len(), wrong.join("\n"));
    println!("{} requests, {compared} comparisons", requests.len());
}
