//! One turn of an agent, the same for every channel.
