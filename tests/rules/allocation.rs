//! What evaluating a rule takes of the heap.

use allocation_counter::measure;
use kubeskiff::schema::rules::Rules;
use kubeskiff::value::json;

use super::generator::schema;

/// How often a second check of an object allocates.
fn allocations(rule: &str) -> u64 {
    let rules = Rules::compile(&schema(rule).0, false);
    let object = r#"{"number":3,"count":5,"text":"abc","other":"abd","texts":["a","b"]}"#;
    let object = json::decode(object.as_bytes()).expect("the object is JSON");
    assert!(rules.check(&object, None, None).errors.is_empty(), "`{rule}` holds");
    measure(|| drop(rules.check(&object, None, None))).count_total
}

#[test]
fn a_comparison_of_two_fields_allocates_nothing() {
    for rule in ["self.number <= self.count", "self.text != self.other", "self.text < self.other && has(self.number)"] {
        assert_eq!(allocations(rule), 0, "{rule}");
    }
    // The allocator does count.
    assert!(allocations("self.text + self.other != ''") > 0);
}
