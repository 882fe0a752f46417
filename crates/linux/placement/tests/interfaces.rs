//! Interfaces of a namespace of the test's own: what the kernel takes, and that it is as before afterwards.

use std::path::Path;
use std::process::Command;

use bumpless_base::Processors;
use bumpless_placement::{Placement, Tree, Wanted, survey};
use bumpless_testing::need_namespaces;

bumpless_testing::tests![
    the_kernel_takes_what_is_set_and_it_is_as_before_at_the_end,
    an_interface_is_not_mistaken_for_one_of_another_namespace,
];

/// Runs `test` in a network namespace with an interface `na`, and in a mount namespace in which /sys is that one's if `is_mounted`.
fn with_interface(is_mounted: bool, test: impl FnOnce() + Send + 'static) {
    need_namespaces();
    let thread = std::thread::spawn(move || {
        // SAFETY: it concerns this thread's namespaces alone.
        let result = unsafe { libc::unshare(libc::CLONE_NEWNET | libc::CLONE_NEWNS) };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
        if is_mounted {
            run("mount", &["--make-rprivate", "/"]);
            run("mount", &["-t", "sysfs", "sysfs", "/sys"]);
        }
        run(
            "ip",
            &["link", "add", "na", "type", "veth", "peer", "name", "nb"],
        );
        test();
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {text}");
}

fn start(folder: &Path) -> (Placement, Vec<String>) {
    let wanted = Wanted {
        interrupts: Some(Processors::one(0)),
        rps: Some(Processors::one(0)),
        napi_priority: None,
    };
    Placement::start((Tree::default(), folder), &["na".to_owned()], &wanted, None)
}

fn the_kernel_takes_what_is_set_and_it_is_as_before_at_the_end() {
    with_interface(true, || {
        let folder = tempfile::tempdir().unwrap();
        let place = || survey(&Tree::default(), "na").place.expect("it is shown");
        let before = place();
        assert!(
            before.rps.is_empty() && before.threads.is_none(),
            "{before:?}"
        );
        let (placement, refused) = start(folder.path());
        assert_eq!(refused, [""; 0]);
        assert_eq!(placement.interfaces(), 1);
        assert_eq!(place().rps, Processors::one(0));
        drop(placement);
        assert_eq!(place(), before);
        // A virtual interface has threads only once it has a program at its driver.
        let wanted = Wanted {
            napi_priority: Some(0),
            ..Wanted::default()
        };
        let with = (Tree::default(), folder.path());
        let (placement, refused) = Placement::start(with, &["na".to_owned()], &wanted, None);
        assert!(refused[0].contains("nothing of the kind"), "{refused:?}");
        drop(placement);
        assert_eq!(place(), before);
    });
}

fn an_interface_is_not_mistaken_for_one_of_another_namespace() {
    with_interface(false, || {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(survey(&Tree::default(), "na").place, None);
        let (placement, refused) = start(folder.path());
        assert!(
            refused[0].contains("another network namespace"),
            "{refused:?}"
        );
        assert_eq!(placement.interfaces(), 0);
    });
}
