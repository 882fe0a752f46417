//! How links are impaired, said.

use bumpless_wan::Impairment;
use serde_json::{Value, json};

/// An impairment for programs.
pub fn told(impairment: Impairment) -> Value {
    json!({
        "loss_percent": impairment.loss_percent(),
        "rate_mbit": impairment.rate_mbit,
    })
}

/// And for people.
pub fn words(impairment: Impairment) -> String {
    let loss = impairment.loss_percent();
    match (impairment.loss_millionths, impairment.rate_mbit) {
        (0, None) => "not impaired".to_owned(),
        (_, None) => format!("loses {loss} %"),
        (0, Some(rate)) => format!("carries at most {rate} Mbit/s"),
        (_, Some(rate)) => format!("loses {loss} %, carries at most {rate} Mbit/s"),
    }
}

/// Links that are impaired, by their names, for `status`: for programs, and for people.
pub fn status(impaired: &[(String, Impairment)]) -> (Vec<Value>, Vec<String>) {
    let link = |(name, impairment): &(String, Impairment)| {
        let mut told = told(*impairment);
        told["link"] = json!(name);
        (told, format!("{name} {}", words(*impairment)))
    };
    impaired.iter().map(link).unzip()
}
