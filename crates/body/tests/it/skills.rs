//! Skills are read by name.

use embody_body::{ReadSkill, SkillText};

use crate::world::{World, caller};

#[tokio::test]
async fn a_skill_is_read_without_invisible_characters_and_cut() {
    let world = World::new().await;
    let read = async |user: &str, name: &str| {
        world.body.read_skill(&caller(user), ReadSkill { name: name.to_owned() }).await
    };
    let tea = SkillText { name: "tea".into(), text: "# Tea\n\nBoil water.".into(), is_cut: false };
    assert_eq!(read("ann", "tea").await.unwrap(), tea);
    let long = read("ann", "long").await.unwrap();
    assert_eq!((long.text.len(), long.is_cut), (40_000, true));
    let error = read("bob", "tea").await.unwrap_err().to_string();
    assert_eq!(error, "unknown skill `tea`: there are none");
}
