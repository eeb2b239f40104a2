;; Answers the calls of the wall clock of WASI 0.2 in a policy: it is always 1970-01-01. `preview2.wat` has the other calls.
;; `wall_clock.wasm` has the same module as bytes, and a test compares both.
(module
  (import "env" "memory" (memory 0))
  (func $zero (param $to i32)
    (i64.store (local.get $to) (i64.const 0))
    (i32.store offset=8 (local.get $to) (i32.const 0)))
  (func (export "now") (param i32) (call $zero (local.get 0)))
  (func (export "resolution") (param i32)
    (call $zero (local.get 0))
    (i32.store offset=8 (local.get 0) (i32.const 1000))))
