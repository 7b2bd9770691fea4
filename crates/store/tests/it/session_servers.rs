//! Servers that are known to be of the session era.

use std::time::Duration;

use crate::world::{World, contract};

contract!(a_session_server_is_known_to_all_processes_until_it_is_old_or_proved_wrong);

const DAY: Duration = Duration::from_secs(24 * 3600);

async fn a_session_server_is_known_to_all_processes_until_it_is_old_or_proved_wrong(world: World) {
    let (first, second) = (&world.store, world.second().await);
    assert!(!first.session_servers().contains("mail", "a", DAY).await.unwrap());
    first.session_servers().add("mail", "a", DAY).await.unwrap();
    first.session_servers().add("mail", "a", DAY).await.unwrap();
    assert!(second.session_servers().contains("mail", "a", DAY).await.unwrap());
    for (body, digest) in [("mail", "b"), ("files", "a")] {
        assert!(!second.session_servers().contains(body, digest, DAY).await.unwrap(), "{body} {digest}");
    }
    assert!(!second.session_servers().contains("mail", "a", Duration::ZERO).await.unwrap(), "it is too old");
    second.session_servers().remove("mail", "a").await.unwrap();
    assert!(!first.session_servers().contains("mail", "a", DAY).await.unwrap());
    // What is old is deleted with the next note.
    first.session_servers().add("mail", "a", DAY).await.unwrap();
    first.session_servers().add("files", "a", Duration::ZERO).await.unwrap();
    assert!(!first.session_servers().contains("mail", "a", DAY).await.unwrap());
    assert!(first.session_servers().contains("files", "a", DAY).await.unwrap());
}
