//! Each property, for random inputs of the right shape and for random bytes.

use kubewire_properties::{
    ALL, answers, keys, list_splitter, paths, protobuf, query, selectors, states, watch_lines, zipped,
};
use proptest::prelude::*;

use crate::shapes::{cuts, failure_body, item, list_body, name, protobuf_body, selector, time, watch_body};

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_list_is_the_same_however_it_is_cut_and_what_serde_reads(cuts in cuts(), body in list_body()) {
        list_splitter::check((cuts, &body));
    }

    #[test]
    fn an_item_says_its_state_as_serde_json_reads_it(cut in 0..300_u16, item in item()) {
        states::check((cut, &item));
    }

    #[test]
    fn a_watch_is_the_same_however_it_is_cut_and_quickly_or_slowly_read(cuts in cuts(), body in watch_body()) {
        watch_lines::check((cuts, &body));
    }

    #[test]
    fn protobuf_is_the_same_however_it_is_cut_and_what_prost_reads(
        cuts in cuts(),
        form in 0..4_u8,
        body in protobuf_body(),
    ) {
        protobuf::check((cuts, form, &body));
    }

    #[test]
    fn what_was_zipped_comes_out_and_what_nobody_zipped_is_refused_or_bounded(form in 0..4_u8, body in protobuf_body()) {
        zipped::check((form, &body));
        zipped::check((form, &[&b"\x28\xb5\x2f\xfd"[..], &body].concat()));
    }

    #[test]
    fn a_selector_prints_to_one_that_selects_the_same(
        text in selector(),
        labels in prop::collection::vec((selector(), selector()), 0..4),
    ) {
        let labels = labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        selectors::check((&text, labels));
    }

    #[test]
    fn a_key_prints_as_it_was_read_and_versions_compare_as_numbers(
        text in name(),
        namespace in name(),
        other in name(),
    ) {
        keys::check((&text, &namespace, &other));
    }

    #[test]
    fn a_query_says_what_was_asked_for(
        labels in name(),
        fields in name(),
        version in name(),
        token in name(),
        secs in prop_oneof![0..3_u64, any::<u64>(), Just(u64::MAX)],
        nanos in any::<u32>(),
    ) {
        query::check((&labels, &fields, &version, &token, secs, nanos));
    }

    #[test]
    fn a_namespace_is_one_segment_or_no_request_is_made(group in name(), plural in name(), namespace in name()) {
        paths::check((&group, &plural, &namespace));
    }

    #[test]
    fn an_answer_of_failure_is_a_small_error_with_no_absurd_wait(
        code in prop_oneof![prop::sample::select(&[200_u16, 410, 429, 500, 503, 504][..]), any::<u16>()],
        body in failure_body(),
        after in time(),
        date in time(),
    ) {
        answers::check((code, &body, after.as_bytes(), date.as_bytes()));
    }

    /// Operations on the delta FIFO and the store too: the bytes stand for them.
    #[test]
    fn random_bytes_break_no_property(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        for property in &ALL {
            property.run(&bytes);
        }
    }
}
