//! Every field of the file, documented once.

use std::net::SocketAddr;

use bumpless_config::KeyServerAt;
use bumpless_config::reading::{
    Describe, Each, Examples, Fault, FieldInfo, Item, Lines, Name, Place, Presence, Reader,
    SectionInfo, ServerAt, Shape, TableReader, Text, Times, Whole, document, fault, many, once,
    show, unknown_sections,
};
use bumpless_pki::NodeName;
use bumpless_secure::group::FUTURE_MAX;

const PATH: Text = Text {
    what: "a path",
    max: 100,
};
const LISTEN: Each<Endpoint> = Each {
    of: Endpoint,
    several: "addresses with ports",
    max: 8,
    example: "[\"10.0.0.5:7300\"]",
};
const FOLLOW: Each<ServerAt> = Each {
    of: ServerAt,
    several: "key servers",
    max: 4,
    example: "[\"main@10.0.0.5:7300\"]",
};
const MEMBERS: Each<Member> = Each {
    of: Member,
    several: "members",
    max: 64,
    example: "[\"left.tank\", \"right.tank\"]",
};
const LIFETIME: Whole = Whole {
    min: 1,
    max: 2_592_000,
};
const IN_ADVANCE: Whole = Whole {
    min: 1,
    max: FUTURE_MAX as u64,
};

/// An address with a port.
struct Endpoint;

impl Describe for Endpoint {
    fn accepts(&self) -> String {
        "an address with a port, such as \"10.0.0.5:7300\"".into()
    }
}

impl Shape for Endpoint {
    type Out = SocketAddr;
    fn read(&self, item: &Item, _: &Lines) -> Result<SocketAddr, Vec<Fault>> {
        let address = item.as_str().and_then(|text| text.parse().ok());
        match address {
            Some(address @ (SocketAddr::V4(_) | SocketAddr::V6(_))) if address.port() != 0 => {
                Ok(address)
            }
            _ => fault(show(item)),
        }
    }
}

/// Who is a member, without the site.
struct Member;

impl Describe for Member {
    fn accepts(&self) -> String {
        "a name as in a certificate without the site, such as \"left.tank\"".into()
    }
}

impl Shape for Member {
    type Out = String;
    fn read(&self, item: &Item, _: &Lines) -> Result<String, Vec<Fault>> {
        let parts = item.as_str().and_then(|text| text.split_once('.'));
        let name = parts.and_then(|(node, pair)| NodeName::new(node, pair, "site").ok());
        match name {
            Some(name) => Ok(name.short().to_owned()),
            None => fault(show(item)),
        }
    }
}

macro_rules! field {
    ($key:literal, $unit:literal, $shape:expr, $presence:expr, $about:literal) => {
        FieldInfo {
            key: $key,
            unit: $unit,
            about: $about,
            presence: $presence,
            shape: &$shape,
        }
    };
}

const KEY_SERVER: SectionInfo = SectionInfo {
    path: "key_server",
    times: Times::Once,
    about: "The server itself.",
    fields: &[
        field!(
            "name",
            "none",
            Name,
            Presence::Required,
            "What it is called: its certificate is that of NAME.keys, from `bumpless pki issue NAME.keys`."
        ),
        field!(
            "certificates",
            "path",
            PATH,
            Presence::Default("\".\""),
            "The folder in which the folder NAME.keys with its certificate is. A path that is not absolute begins at the folder of this file."
        ),
        field!(
            "listen",
            "addresses",
            LISTEN,
            Presence::Required,
            "Where members ask, by TCP."
        ),
        field!(
            "state",
            "path",
            PATH,
            Presence::Computed("NAME.keys.state"),
            "The file with the keys and who has them, for this user alone, in the place of one that the server makes itself. Whoever reads \
             it has the keys. Without it a server begins anew, and members that it does not reach within 3 s lose each other."
        ),
        field!(
            "socket",
            "path",
            PATH,
            Presence::Computed("bumpless/key-server.sock below $XDG_RUNTIME_DIR or /run"),
            "Path of the socket at which `bumpless key-server status` asks. A path that is not absolute begins at the folder of this file."
        ),
        field!(
            "follow",
            "servers",
            FOLLOW,
            Presence::Computed("none: this one makes the keys"),
            "Servers from which this one takes the keys of its groups, of which it must be a member, as NAME.keys. It gives them on, and makes \
             none: members that name it after the others lose nothing when those are lost. It makes keys itself when it is started without this."
        ),
    ],
    parts: &[],
};

const GROUP: SectionInfo = SectionInfo {
    path: "group",
    times: Times::Many,
    about: "Who shares keys. The nodes of a pair ask for the group with the pair's name.",
    fields: &[
        field!("name", "none", Name, Presence::Required, "Its name."),
        field!(
            "members",
            "names",
            MEMBERS,
            Presence::Required,
            "Who is given its keys: nodes as NODE.PAIR, servers that follow this one as NAME.keys. Whoever is taken away is given none after a \
             restart of the server, and the keys are rolled then."
        ),
        field!(
            "lifetime_s",
            "seconds",
            LIFETIME,
            Presence::Default("3600"),
            "How long each key is sealed with."
        ),
        field!(
            "in_advance",
            "keys",
            IN_ADVANCE,
            Presence::Default("24"),
            "How many keys are given before their time. For so many lifetimes members go on without any server, and after that nothing is sealed \
             and nothing opened: nodes lose each other."
        ),
    ],
    parts: &[],
};

const SECTIONS: [&SectionInfo; 2] = [&KEY_SERVER, &GROUP];

/// The sections as written; wrong fields are `None` and reported.
pub struct File {
    pub server: Place,
    pub name: Option<String>,
    pub certificates: Option<String>,
    pub listen: Option<Vec<SocketAddr>>,
    pub state: Option<Option<String>>,
    pub socket: Option<Option<String>>,
    pub follow: Option<Option<Vec<KeyServerAt>>>,
    pub groups: Vec<GroupEntry>,
}

/// A `[[group]]`.
pub struct GroupEntry {
    pub place: Place,
    pub name: Option<String>,
    pub members: Option<Vec<String>>,
    pub lifetime_s: Option<u64>,
    pub in_advance: Option<u64>,
}

/// Reads the sections of `text`. `None`: its syntax does not permit it; reported.
pub fn read(reader: &mut Reader, text: &str) -> Option<File> {
    let document = document(reader, text)?;
    let root = document.as_table();
    unknown_sections(reader, root, &SECTIONS);
    let mut table = once(reader, root, &KEY_SERVER);
    let name = table.required("name", &Name);
    let certificates = table.or_default("certificates", &PATH, "\".\"");
    let listen = table.required("listen", &LISTEN);
    let state = table.optional("state", &PATH);
    let socket = table.optional("socket", &PATH);
    let follow = table.optional("follow", &FOLLOW);
    Some(File {
        server: table.finish(&KEY_SERVER, &SECTIONS),
        name,
        certificates,
        listen,
        state,
        socket,
        follow,
        groups: many(reader, root, &GROUP, group),
    })
}

fn group(mut table: TableReader<'_>) -> GroupEntry {
    GroupEntry {
        name: table.required("name", &Name),
        members: table.required("members", &MEMBERS),
        lifetime_s: table.or_default("lifetime_s", &LIFETIME, "3600"),
        in_advance: table.or_default("in_advance", &IN_ADVANCE, "24"),
        place: table.finish(&GROUP, &SECTIONS),
    }
}

/// A file in which every field is explained.
pub fn sample() -> String {
    let given = |path: &str| -> Examples {
        match path {
            "key_server" => &[&[("name", "\"main\""), ("listen", "[\"10.0.0.5:7300\"]")]],
            "group" => &[&[
                ("name", "\"tank\""),
                ("members", "[\"left.tank\", \"right.tank\"]"),
            ]],
            _ => &[&[]],
        }
    };
    let intro = "# Whose keys this server has, and who is given them.\n\
         # `bumpless key-server check FILE` says everything that is wrong in it, `bumpless key-server run FILE` starts.\n";
    bumpless_config::reading::sample(intro, &SECTIONS, given)
}
