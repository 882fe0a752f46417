//! Makes the certificate.

use std::error::Error;
use std::fs;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let out = std::env::var("OUT_DIR")?;
    let made = rcgen::generate_simple_self_signed(["peer".to_owned()])?;
    let write = |name: &str, text: &[u8]| fs::write(Path::new(&out).join(name), text);
    write("certificate.pem", made.cert.pem().as_bytes())?;
    write("certificate.der", made.cert.der())?;
    write("key.pem", made.signing_key.serialize_pem().as_bytes())?;
    write("key.der", &made.signing_key.serialize_der())?;
    Ok(())
}
