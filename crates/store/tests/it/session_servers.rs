//! Servers that are known to be of the session era.

use std::time::Duration;

use crate::world::{World, contract};

contract!(a_session_server_is_known_to_all_processes_until_it_is_old_or_proved_wrong);

const DAY: Duration = Duration::from_secs(24 * 3600);

async fn a_session_server_is_known_to_all_processes_until_it_is_old_or_proved_wrong(world: World) {
    let (first, second) = (&world.store, world.second().await);
    assert!(!first.is_session_server("mail", "a", DAY).await.unwrap());
    first.add_session_server("mail", "a", DAY).await.unwrap();
    first.add_session_server("mail", "a", DAY).await.unwrap();
    assert!(second.is_session_server("mail", "a", DAY).await.unwrap());
    for (body, digest) in [("mail", "b"), ("files", "a")] {
        assert!(!second.is_session_server(body, digest, DAY).await.unwrap(), "{body} {digest}");
    }
    assert!(!second.is_session_server("mail", "a", Duration::ZERO).await.unwrap(), "it is too old");
    second.remove_session_server("mail", "a").await.unwrap();
    assert!(!first.is_session_server("mail", "a", DAY).await.unwrap());
    // What is old is deleted with the next note.
    first.add_session_server("mail", "a", DAY).await.unwrap();
    first.add_session_server("files", "a", Duration::ZERO).await.unwrap();
    assert!(!first.is_session_server("mail", "a", DAY).await.unwrap());
    assert!(first.is_session_server("files", "a", DAY).await.unwrap());
}
