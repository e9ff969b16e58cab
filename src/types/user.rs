//! Users as parts of objects.

use super::{Codec, Message, message, string};

pub static USER_INFO: Message = Message::new(
    "UserInfo",
    &[
        string(1, "username").describe("The name that tells the user from all others."),
        string(2, "uid").go("UID").describe("What tells the user from others who had the name at other times."),
        string(3, "groups").list().atomic().describe("The groups that the user is in."),
        message(4, "extra", &EXTRA_VALUE)
            .map()
            .go_type("v1.ExtraValue")
            .describe("What else who authenticated the user said of it."),
    ],
);

pub static EXTRA_VALUE: Message = Message::new("ExtraValue", &[string(1, "").list().always()]).codec(Codec::List);
