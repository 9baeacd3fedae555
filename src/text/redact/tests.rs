use proptest::prelude::*;

use super::*;

/// Made-up values in the published formats; assembled so that no scanner takes this file for
/// a leak.
fn seeded() -> Vec<(String, String)> {
    let letters = "aB3dE5fG7hJ9kLmN0pQrS2tUvW4xYz6A8bC1";
    let token = |prefix: &str, length: usize| prefix.to_owned() + &letters.repeat(3)[..length];
    let upper = "Q7W2E5R6T3Y4U2I7";
    let mut cases: Vec<(String, String)> = vec![
        (format!("id {}{upper} used", "AKIA"), upper.into()),
        (format!("id {}{upper}", "ASIA"), upper.into()),
    ];
    for (prefix, length) in [
        ("ghp_", 36),
        ("gho_", 36),
        ("github_pat_", 82),
        ("glpat-", 20),
        ("hf_", 34),
        ("sk-", 48),
        ("sk-ant-api03-", 90),
        ("xoxb-", 30),
        ("AIza", 35),
        ("npm_", 36),
        ("ya29.", 60),
        ("GOCSPX-", 28),
        ("nvapi-", 64),
        ("gsk_", 52),
        ("hvs.", 90),
        ("dckr_pat_", 27),
        ("gldt-", 20),
        ("sk-proj-", 90),
        ("wandb_v1_", 60),
    ] {
        let secret = token("", length);
        cases.push((format!("x '{prefix}{secret}'"), secret.clone()));
        cases.push((format!("export KEY={prefix}{secret}\n"), secret));
    }
    let hex = "0123456789abcdef0123456789abcdef01234567";
    for (line, secret) in [
        ("password=hunter2 next", "hunter2"),
        ("PGPASSWORD=hunter2", "hunter2"),
        ("--password hunter2", "hunter2"),
        ("login --password zq", "zq"),
        ("login --http-password=zq", "zq"),
        ("db_pass: zq", "zq"),
        ("  smtp-password: zq", "zq"),
        ("DB_PASS=hunter2", "hunter2"),
        ("PASS=hunter", "hunter"),
        ("password: hunter2", "hunter2"),
        ("export GPG_PASSPHRASE=zq", "zq"),
        ("PASSPHRASE=zq", "zq"),
        ("passphrase = \"zq zx\"", "zq zx"),
        ("curl -u user:zqpw https://host", "zqpw"),
        ("+ curl -sS -u 'user:zq pw' https://host", "zq pw"),
        ("curl -fsSu user:zqpw https://host", "zqpw"),
        ("curl --user=user:zqpw https://host", "zqpw"),
        ("curl https://host --user user:zqpw", "zqpw"),
        ("mysql -h db -u me -phunter2 data", "hunter2"),
        ("mysqldump -p'hunter 2' data", "hunter 2"),
        ("sshpass -p hunter2 ssh host", "hunter2"),
        (r#"{"password": "hunter two"}"#, "hunter two"),
        ("export HF_TOKEN='abcdefghijkl'", "abcdefghijkl"),
        ("api_key = s3cretvalue", "s3cretvalue"),
        ("client_secret: s3cretvalue", "s3cretvalue"),
        ("aws_secret_access_key = abc/def+1234", "abc/def+1234"),
        ("url?token=abcd1234&x=1", "abcd1234"),
        ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("-H 'authorization: Bearer abc.def-123'", "abc.def-123"),
        ("sent Bearer abcdef123456", "abcdef123456"),
        ("pull https://me:pa55@host/x.git", "pa55"),
        ("postgres://me:p:w@db:5432/x", "p:w"),
        // Other names for it.
        ("MYSQL_PWD=zqzq mysql", "zqzq"),
        ("export REDISCLI_PWD=zq", "zq"),
        ("Server=db;Uid=me;Pwd=zqzq;Port=1", "zqzq"),
        ("PGPASS=zq", "zq"),
        ("SMTP_PASS=zqzq", "zqzq"),
        ("smtpPass: 'zqzq'", "zqzq"),
        ("StoragePass=zqzq", "zqzq"),
        ("bindpw=zq", "zq"),
        ("STRIPE_KEY=zqzqzq", "zqzqzq"),
        ("MY_KEY='zq zqzq'", "zq zqzq"),
        ("stripe_key: zqzq0123456789zq", "zqzq0123456789zq"),
        ("TOKEN2=zqzqzqzq", "zqzqzqzq"),
        ("HF_TOKEN_2=zqzqzqzq", "zqzqzqzq"),
        ("api_token_value=zqzqzqzq", "zqzqzqzq"),
        ("apiKey: zqzq1234", "zqzq1234"),
        ("accessToken=zqzqzqzq", "zqzqzqzq"),
        (r#"{"clientSecret": "zq zq"}"#, "zq zq"),
        (r#"{"AccountKey":"zq+zq/zq=="}"#, "zq+zq/zq=="),
        ("X-Api-Key: zqzq1234", "zqzq1234"),
        ("AZURE_STORAGE_KEY=/zq+zqzqzq==", "/zq+zqzqzq=="),
        ("x.blob.core.windows.net/c?sv=1&sig=zqzq%2Bzqzqzqzq%3D&se=2", "zqzq%2Bzqzqzqzq%3D"),
        ("X-Amz-Signature=0123456789abcdefzq", "0123456789abcdefzq"),
        ("SLURM_JWT=zqzqzqzq12345678", "zqzqzqzq12345678"),
        ("spring.datasource.password=zq", "zq"),
        ("PASSWORD_1=zq", "zq"),
        ("paSSwoRd=zq", "zq"),
        ("  password: letmein", "letmein"),
        ("client_secret: verysecretword", "verysecretword"),
        // Other ways to give it.
        ("password=zq,zx next", "zq,zx"),
        ("password=zq&zx;zy next", "zq&zx;zy"),
        ("password=zq\"zx next", "zq\"zx"),
        ("password=it's", "it's"),
        ("password=\"zq\\\"zx\" next", "zx"),
        (r#"{"cmd": "run --password=\"zq zx\" -v"}"#, "zq zx"),
        (r#"{"a": "{\"password\": \"zq zx\"}"}"#, "zq zx"),
        ("password = \"\"\"zq zx\"\"\"", "zq zx"),
        ("password=\"zq zx", "zq zx"),
        ("password=b'zq zx'", "zq zx"),
        ("password := \"zq\"", "zq"),
        (":password => 'zq'", "zq"),
        ("<password>zq zx</password>", "zq zx"),
        ("x?password%3Dzqzx%26a", "zqzx"),
        ("os.environ[\"WANDB_API_KEY\"] = \"zqzq\"", "zqzq"),
        ("os.environ.setdefault('HF_TOKEN', 'zqzq1234')", "zqzq1234"),
        ("setenv HF_TOKEN zqzqzqzq", "zqzqzqzq"),
        ("aws configure set aws_secret_access_key zqzq", "zqzq"),
        ("git config user.password zqzq", "zqzq"),
        ("machine h login me password zqzq", "zqzq"),
        ("machine h\n  login me\n  password zqzq\n", "zqzq"),
        ("tool -token zqzqzqzq", "zqzqzqzq"),
        ("tool --api-key zqzq", "zqzq"),
        ("openssl enc -pass pass:zqzq -in x", "zqzq"),
        ("Proxy-Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("{'Authorization': 'Basic dXNlcjpwYXNz'}", "dXNlcjpwYXNz"),
        ("Authorization: AWS4-HMAC-SHA256 Credential=a/b, Signature=zqzq1", "zqzq1"),
        ("Cookie: sid=zqzq; theme=x", "zqzq"),
        (r#"{"auths": {"h": {"auth": "dXNlcjpwYXNz"}}}"#, "dXNlcjpwYXNz"),
        // In addresses.
        ("pull https://me:p@ss@host/x.git", "p@ss"),
        ("pull https://me:p@ss@host/x@v1", "p@ss"),
        ("pull https://me:p/ss@host/x", "p/ss"),
        ("redis://:zqzq@host:6379/0", "zqzq"),
        ("https://me:%40zq@host", "%40zq"),
        ("https://oauth2:zqzq@gitlab.org/x.git", "zqzq"),
        // Programs.
        ("redis-cli -h db -a x1y2 ping", "x1y2"),
        ("mysql -pXYZ", "XYZ"),
        ("docker login -u me -p zqzq registry", "zqzq"),
        ("podman login --username me -p zqzq", "zqzq"),
        ("/usr/bin/curl \\\n  -H 'a;b' \\\n  -u me:zqzq", "zqzq"),
        ("smbclient -U me%zqzq //host/x", "zqzq"),
        ("ldapsearch -x -D cn=a -w zqzq", "zqzq"),
        ("7z x -pzqzq a.7z", "zqzq"),
        ("Command '['sshpass', '-p', 'zq zx', 'ssh', 'h']' returned 1", "zq zx"),
        ("subprocess.run([\"curl\", \"-u\", \"me:zqzq\"])", "zqzq"),
        ("bash -c 'curl -u me:zqzq'", "zqzq"),
        // Names and values that only a terminal shows.
        ("pass\x1b[0mword=zqzq", "zqzq"),
        ("\x1b[1mpassword\x1b[0m\x1b[32m=\x1b[0mzqzq", "zqzq"),
        ("pass\u{200b}word=zqzq", "zqzq"),
        ("p\0a\0s\0s\0w\0o\0r\0d\0=\0z\0q", "z\0q"),
        ("\x1b]0;password=zqzq\x07", "zqzq"),
    ] {
        cases.push((line.into(), secret.into()));
    }
    cases.push((format!("wandb login --relogin {hex}"), hex.into()));
    cases.push((format!("wandb: using key {hex} from netrc"), hex.into()));
    let body = token("", 60);
    let kind = "RSA PRIVATE KEY-----";
    for key in [
        format!("-----BEGIN {kind}\n{body}\n-----END"),
        format!("-----BEGIN {kind}\nProc-Type: 4,ENCRYPTED\n\n{body}\n-----END {kind}"),
        format!("-----BEGIN {kind}\n12:00 INFO {body}\n12:00 INFO -----END {kind}"),
        // Cut off on either side.
        format!("-----BEGIN {kind}\n{body}"),
        format!("{body}\n{body}\n-----END {kind}"),
        format!(r"{body}\n-----END {kind}"),
    ] {
        cases.push((key, body.clone()));
    }
    let claims = ["eyJ", "hbGciOiJIUzI1NiJ9", ".eyJzdWIiOiIxMjM0In0.", "c2lnbmF0dXJl"];
    cases.push((format!("cookie {}", claims.concat()), claims[3].into()));
    cases
}

#[test]
fn every_seeded_secret_is_masked_and_its_length_kept() {
    let told = |line: &str, secret: &str| {
        let clean = masked(line);
        // The dots of a web token, and all of a short header, are masked with it.
        let known = holds_secret(&clean) || line.contains("eyJ");
        let sound = !clean.contains(secret)
            && clean.len() == line.len()
            && masked(&clean) == clean
            && holds_secret(line)
            && known;
        (!sound).then(|| format!("{line} -> {clean}"))
    };
    let wrong: Vec<String> =
        seeded().iter().filter_map(|(line, secret)| told(line, secret)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(!holds_secret("#SBATCH --mem=1G\n# ******** train ********\n"));
}

#[test]
fn a_very_long_secret_is_not_cut_inside_a_character() {
    let line = format!("password=x{}", "é".repeat(3000));
    assert_eq!(masked(&line).len(), line.len());
}

#[test]
fn what_surrounds_a_secret_stays() {
    assert_eq!(masked("password=hunter2 next"), "password=******* next");
    assert_eq!(masked("https://me:pa55@host/x"), "https://me:****@host/x");
    assert_eq!(masked(r#"{"token": "abcd1234", "n": 1}"#), r#"{"token": "********", "n": 1}"#);
}

#[test]
fn a_broken_escape_sequence_hides_no_name() {
    // A terminal would take the p for the sequence's; who reads the bytes would not.
    assert_eq!(masked("\x1b password=zqzq"), "\x1b password=****");
}

#[test]
fn masked_json_stays_json() {
    let key = format!("-----BEGIN {}-----", "PRIVATE KEY");
    let text = format!(r#"{{"k":"{key}\nMIIB\nabc\n-----END","password":"a\"b\\"}}"#);
    assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
    let clean = masked(&text);
    assert!(serde_json::from_str::<serde_json::Value>(&clean).is_ok(), "{clean}");
    assert!(!clean.contains("MIIB"));
}

#[test]
fn each_command_of_a_long_line_is_searched_once() {
    let line = "curl ".repeat(400_000);
    assert_eq!(masked(&line), line);
    let line = format!(
        "{}-u me:zqpw; curl -u me:zqpx x; curl $(curl -u me:zqpy) -u me:zqpz",
        "curl ".repeat(900)
    );
    let clean = masked(&line);
    assert!(!clean.contains("zq"), "{}", &clean[4000..]);
}

#[test]
fn ordinary_lines_stay_as_they_are() {
    let lines = [
        "Epoch 3: loss=0.31 tokens=4096 tokens/s: 12345",
        "pad_token=<pad> eos_token: </s> pad_token_id=0 max_tokens=4096",
        "SyntaxError: invalid token: unexpected end of input",
        "OSError: Token is required, but no token found. token=None",
        "export HF_TOKEN=$TOKEN PASSWORD=${PW}",
        "task-0123456789abcdef0123456789 risk-assessment-2024-long-name-x",
        "commit 0123456789abcdef0123456789abcdef01234567",
        "master at tcp://10.0.0.1:29500 and http://host:8080/path@v1",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "hf_hub_download(repo_id='bert') sk-learn-compatible-estimators-only",
        "Permission denied (publickey,password).",
        "forward_pass: 12ms backward_pass=0.5s first_pass: done per_pass=x",
        "PASS: test_io_123 pass=12 fail=0 passed: 4 bypass: on compass=north",
        "PASS: test_forward (0.1s) pass: all44444 good",
        "curl -x proxy:3128 https://host:8080/x -o a:b",
        "docker run -u 1000:1000 image; mysql -p -h db; mysql -u me",
        "curl: (6) Could not resolve host: x",
        "Wrong password: access denied for user",
        "Enter password: ",
        "slurmstepd: error: Detected 1 oom_kill event in StepId=68.0.",
        "-----BEGIN CERTIFICATE-----",
        "#SBATCH --mem-per-cpu=4G --ntasks-per-node=4 --export=ALL",
        "max_tokens=4096 token_count: 12345678 num_token=8",
        "KeyError: 'password'",
        "KeyError: 'api_key' TypeError: __init__() got an unexpected keyword 'token'",
        "PWD=/home/x OLDPWD=/home/y PWD=~/x MY_PWD=/scratch/me JOB_PWD=$PWD",
        "SLURM_JOB_ID=12345678 SLURM_WCKEY=project SLURM_SUBMIT_DIR=/home/me",
        "WCKey=*default WCKeys=normal wckey: project",
        "tokenizer=bert-base-uncased tokenizer_class=BertTokenizer",
        "sorted(rows, key=lambda row: row.name) key=value key: 'layers.12.mlp.weight'",
        "MONKEY=banana123 TURKEY=istanbul1 monkey: 'chimpanzee1'",
        "Missing key(s) in state_dict: \"layer.0.weight\" Unexpected key: encoder.layer.11",
        "SORT_KEY=timestamp PUBLIC_KEY=abcdef123456 publicKey: abcdef123456 S3_KEY=/a/b/c",
        "ssh_key=/home/me/.ssh/id_ed25519 SSH_KEY=~/.ssh/id_rsa PRIVATE_KEY=./key.pem",
        "JobCredentialPrivateKey = /etc/slurm/jwt.key",
        "AuthAltParameters = jwt_key=/var/spool/slurm/jwt_hs256.key",
        "password_file=/run/x password-stdin token_path=/a/b secret_name=db token-type: bearer1x",
        "AWS_ACCESS_KEY_ID=x1 key_id=12345678 private_key_id: 0123456789",
        "login(user, password=args.password, token=os.environ[\"HF_TOKEN\"])",
        "login(token=token, password=password)",
        "password: str = None",
        "Authorization: Bearer $TOKEN",
        "401 Client Error: authorization: denied for url: https://h/x",
        "AuthType=auth/munge auth=kerberos \"auth\": \"munge\"",
        "NPW=12345 npw: 4096 ecutwfc=40",
        "signature=0123456789abcdef0123456789",
        "docker run -p 8080:80 image; ssh -p 2222 host; mkdir -p a/b; rsync -a x y",
        "docker://ubuntu:22.04@sha256:0123456789abcdef oras://h:5000/x@v1",
        "all PASSWD: ALL NOPASSWD: ALL passwd: files systemd",
        "set token limits now; cannot set max-token length",
        "token: unexpected",
        "redis-cli -h host -p 6379; mysqldump: Got error: 1045; unzip -p a.zip x",
        "Bypass=1 compass=north pass@1: 0.53 pass1=ok test_pass=yes",
        "torch.manual_seed; PRNGKey: [0, 42] rng_key=12345678",
    ];
    let changed = lines.iter().filter(|line| masked(line) != **line);
    let changed: Vec<String> = changed.map(|line| format!("{line} -> {}", masked(line))).collect();
    assert!(changed.is_empty(), "{}", changed.join("\n"));
}

/// Where each trigger led to a look at all that follows, a quarter of a megabyte would take minutes.
#[test]
fn no_text_is_slow() {
    for unit in [
        "token=1 ",
        "token=$",
        "token='",
        "password=\\\"",
        "key_",
        "a_key=1",
        "://a:",
        "://a:b@",
        "curl ",
        "curl -u '",
        "['curl', ",
        "docker login ",
        "eyJaaaaaaaaaaa.",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "AAAA\n-----END PRIVATE KEY-----",
        "wandb",
        "bearer a",
        "sk-",
        "hf_",
        "login a password ",
        "Authorization: Digest a, ",
        "cookie: ",
        "\u{1b}]pass",
        "\u{9b}1",
        "\u{200b}pw",
        "password=&a",
        "password:;",
        "set api_key ",
        "token=\"\"\"",
        "\\",
        "'",
        "&sig=a",
    ] {
        let text = unit.repeat((1 << 18) / unit.len());
        assert_eq!(masked(&text).len(), text.len());
    }
}

/// What nobody sees, and could part a name or a secret.
const HIDDEN: &[&str] = &[
    "\x1b[0m",
    "\x1b[38;5;1m",
    "\x1b]0;title\x07",
    "\x1b(B",
    "\u{9b}1m",
    "\u{200b}",
    "\u{202e}",
    "\0",
    "\x08",
    "\u{ad}",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Whatever stands around it on other lines or before and behind it, and whatever hidden in it.
    #[test]
    fn no_seeded_secret_survives_what_surrounds_it(
        index in any::<proptest::sample::Index>(),
        before in "[^zZqQ\\x1b\\x80-\\x9f]{0,40}",
        behind in "[^zZqQ]{0,40}",
        glue in proptest::sample::select(&[" ", "\n", "\t", "\r\n"][..]),
        parts in proptest::collection::vec(
            (any::<proptest::sample::Index>(), proptest::sample::select(HIDDEN)),
            0..4,
        ),
    ) {
        let cases = seeded();
        let (line, secret) = index.get(&cases);
        // What stands alone on its line is known by that.
        let alone = matches!(secret.as_str(), "letmein" | "verysecretword");
        let glue = if alone { "\n" } else { glue };
        let mut line = line.clone();
        if line.chars().all(|c| c == '\n' || !c.is_control()) {
            let places: Vec<usize> = line.char_indices().map(|(at, _)| at).collect();
            let mut parts: Vec<(usize, &str)> =
                parts.iter().map(|(at, hidden)| (*at.get(&places), *hidden)).collect();
            // From behind, so that none parts another.
            parts.sort_unstable();
            for (at, hidden) in parts.iter().rev() {
                line.insert_str(*at, hidden);
            }
        }
        let text = [&before, glue, &line, glue, &behind].concat();
        let clean = masked(&text);
        prop_assert_eq!(clean.len(), text.len());
        let shown = |text: &str| {
            let lines = text.split('\n').map(|line| crate::text::printable(line.as_bytes()));
            lines.collect::<Vec<_>>().join("\n")
        };
        prop_assert!(!shown(&clean).contains(&shown(secret)), "{:?} -> {:?}", text, clean);
        // Nor is it known when the hidden is gone first, as in an answer.
        prop_assert!(!masked(&shown(&line)).contains(&shown(secret)), "{:?}", shown(&line));
        prop_assert_eq!(masked(&clean), clean);
    }

    #[test]
    fn lengths_and_a_second_pass_never_change(
        parts in proptest::collection::vec(
            prop_oneof![
                "\\PC{0,12}",
                proptest::sample::select(TRIGGERS.clone()).prop_map(|(text, _)| text.to_owned()),
                "[=: \"'\n\\\\@/A-Za-z0-9-]{0,40}",
            ],
            0..12,
        ),
    ) {
        let text = parts.concat();
        let once = masked(&text);
        prop_assert_eq!(once.len(), text.len());
        prop_assert_eq!(once.lines().count(), text.lines().count());
        prop_assert_eq!(masked(&once), once);
    }

    #[test]
    fn no_bytes_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        mask_secrets(&mut bytes);
    }
}
