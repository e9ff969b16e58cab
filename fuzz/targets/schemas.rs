//! From a schema to what it does to objects.

use kubeskiff::meta::field::Path;
use kubeskiff::schema::structural::Structural;
use kubeskiff::schema::{check, coerce, convert, default, json_schema, list_type, prune, validate};
use kubeskiff::value::{Value, json};

use super::{Linear, Target};

pub const TARGET: Target = Target {
    name: "schemas",
    run,
    steps: Linear { beside: 1 << 20, per_byte: 200 },
    allocated_bytes: Linear { beside: 4 << 20, per_byte: 3_000 },
};

/// The input is a schema, a line `---`, and an object. Encoding a schema and decoding it gives the same schema. Pruning and
/// defaulting twice changes nothing, and an update of an object by itself has no error that its creation has not.
fn run(data: &[u8]) {
    let (schema, object) = super::parts(data);
    let Ok(Ok((schema, _))) = json::decode(schema).map(|schema| json_schema::decode(&schema)) else { return };
    let encoded = schema.encode();
    let again = json_schema::decode(&encoded).expect("what is encoded can be decoded").0.encode();
    // What is neither a schema nor a list Go writes as null, and reads as none.
    if !json::encode_to_string(&encoded).contains(r#""items":null"#) {
        assert_eq!(again, encoded, "decode after encode is the identity");
    }
    let once_more = json_schema::decode(&again).expect("what is encoded can be decoded").0.encode();
    assert_eq!(once_more, again, "decode after encode is the identity");
    let Ok(schema) = convert::to_structural(&schema) else { return };
    if !check::validate_structural(&Path::ROOT, &schema).is_empty() {
        return;
    }
    let Ok(object) = json::decode(object) else { return };
    write(object, &schema);
}

fn write(mut object: Value, schema: &Structural) {
    prune::prune(&mut object, schema, true);
    let pruned = object.clone();
    assert!(prune::prune(&mut object, schema, true).is_empty(), "nothing is left to prune");
    assert_eq!(object, pruned, "pruning twice changes nothing");

    default::prune_non_nullable_nulls(&mut object, schema);
    if coerce::coerce(&Path::ROOT, &mut object, schema, false, false).is_err() {
        return;
    }
    _ = default::apply(&mut object, schema);
    let defaulted = object.clone();
    _ = default::apply(&mut object, schema);
    assert_eq!(object, defaulted, "defaulting twice changes nothing");

    let created = validate::validate(&Path::ROOT, &object, schema);
    _ = coerce::validate_embedded(&Path::ROOT, &object, schema, false);
    _ = list_type::validate(&Path::ROOT, &object, schema);
    for error in validate::validate_update(&Path::ROOT, &object, &object, schema).into_vec() {
        assert!(created.contains(&error), "an update only ratchets: {error:?}");
    }
}
