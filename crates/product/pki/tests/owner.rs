//! Files of other users, which only root can make.

mod support;

use std::os::unix::fs::chown;

use bumpless_guarded_file as guarded_file;
use bumpless_pki::Cause;
use bumpless_testing::need_root;
use support::Site;

fn files_of_another_user_are_refused() {
    need_root();
    for name in ["certificate.pem", "key.pem", "authority.pem", "revoked.pem"] {
        let site = Site::new("plant7");
        site.issue("left.tank");
        let path = site.path("left.tank").join(name);
        chown(&path, Some(65_534), None).unwrap();
        let told = site.load("left.tank").unwrap_err().0;
        assert_eq!((told.len(), &told[0].path), (1, &path));
        let owner = matches!(
            told[0].cause,
            Cause::File(guarded_file::Cause::Owner(65_534))
        );
        assert!(owner, "{told:?}");
        assert!(told[0].to_string().contains("chown USER"), "{told:?}");
    }
}

bumpless_testing::tests!(files_of_another_user_are_refused);
