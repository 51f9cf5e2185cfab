//! The fit finds the model behind the measurements, and the paper's points on 1 and 8 servers predict 128.

use fairshare_sim::{calibrate, Fit, Task};
use serde_json::{json, Value};

fn fit(document: Value) -> Fit {
    let task: Task = serde_json::from_value(document).unwrap();
    calibrate(&task).unwrap()
}

/// What a fitted model says of its own measurements is measured again: from another starting point the fit
/// must come back to the same model.
#[test]
fn finds_the_model_that_made_the_measurements() {
    let setup = |size: u64, bytes: u64, throughput: f64| json!({"servers": 1, "size": size, "bytes_per_process": bytes, "throughput": throughput});
    let first = fit(json!({
        "server": {"jitter": 0.0, "workers": 4},
        "measurements": [setup(4096, 20_000_000, 2e8), setup(1 << 20, 400_000_000, 5e9)],
    }));
    assert_eq!(first.fitted, ["server.bandwidth", "server.overhead_s"]);
    // Four workers at 2e8 / 4096 requests a second: about 80 us each.
    assert!(
        (first.server.overhead_s / 80e-6 - 1.0).abs() < 0.1,
        "{}",
        first.server.overhead_s
    );
    assert!(first.error < 0.02, "{}", first.error);
    let second = fit(json!({
        "server": {"jitter": 0.0, "workers": 4, "bandwidth": 2e9, "overhead_s": 5e-6},
        "measurements": [
            setup(4096, 20_000_000, first.measurements[0].simulated),
            setup(1 << 20, 400_000_000, first.measurements[1].simulated),
        ],
    }));
    assert!(second.error < 0.005, "{}", second.error);
    assert!((second.server.bandwidth / first.server.bandwidth - 1.0).abs() < 0.02);
    assert!((second.server.overhead_s / first.server.overhead_s - 1.0).abs() < 0.02);
}

/// Section 5.2: 11.7 GB/s on one server and 77.1 on eight (82 %); the paper measured 1017 on 128 (68 %). One run
/// on eight servers is one placement: the fit says what it leaves possible; the paper's number is at its lower end.
#[test]
fn the_papers_points_on_1_and_8_servers_predict_128() {
    let fit = fit(json!({
        "repeats": 10,
        "measurements": [{"servers": 1, "throughput": 11.7e9}, {"servers": 8, "throughput": 77.1e9}],
        "predict": [{"servers": 128}],
    }));
    assert_eq!(fit.fitted, ["server.bandwidth", "pieces"]);
    assert!(fit.error < 0.03, "{}", fit.error);
    assert!(fit.plausible_pieces[0] <= fit.pieces && fit.pieces <= fit.plausible_pieces[1]);
    let predicted = &fit.predictions[0];
    assert!(
        (predicted.simulated / 1017e9 - 1.0).abs() < 0.2,
        "{}",
        predicted.simulated
    );
    assert!(predicted.plausible[0] < 1.1 * 1017e9, "{:?}", predicted.plausible);
    assert!(predicted.plausible[0] <= predicted.simulated && predicted.simulated <= predicted.plausible[1]);
    assert!(predicted.least <= predicted.simulated && predicted.simulated <= predicted.greatest);
}

#[test]
fn a_throughput_is_needed() {
    let task: Task = serde_json::from_value(json!({"measurements": [{"servers": 1}]})).unwrap();
    assert!(calibrate(&task).err().unwrap().contains("throughput"));
    let task: Task = serde_json::from_value(json!({"measurements": []})).unwrap();
    assert!(calibrate(&task).is_err());
}
