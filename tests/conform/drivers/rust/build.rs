//! Tells the driver which version of the crate the lock file chose.

fn main() {
    let lock = std::fs::read_to_string("Cargo.lock").expect("Cargo.lock");
    let mut lines = lock.lines().skip_while(|line| *line != "name = \"rdkafka\"");
    let version = lines.nth(1).expect("rdkafka in Cargo.lock").trim_start_matches("version = ").trim_matches('"').to_string();
    println!("cargo:rustc-env=RDKAFKA_CRATE_VERSION={version}");
    println!("cargo:rerun-if-changed=Cargo.lock");
}
