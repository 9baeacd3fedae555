//! The `jobwise` program; everything is in the library.

fn main() -> std::process::ExitCode {
    jobwise::cli::main()
}
