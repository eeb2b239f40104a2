;; Answers the calls of WASI 0.2 in a policy, except those of the wall clock. `policy build` merges this module into a
;; policy that imports interfaces of WASI 0.2, once for each interface. The signatures are those of the canonical ABI.
;; `preview2.wasm` has the same module as bytes, and a test compares both.
;;
;; Every answer is the same in every sandbox, as in `wasi.wat`. Handles are plain numbers: 0 is standard input, 1 is
;; standard output, and 2 is standard error. The text that the policy writes to standard error becomes the policy's last
;; words (wit/policy.wit), which the host reads when the policy ends. What it writes to standard output is dropped.
(module
  (import "env" "memory" (memory 0))
  (import "__main_module__" "cabi_realloc" (func $realloc (param i32 i32 i32 i32) (result i32)))

  ;; The nanoseconds of the monotonic clock.
  (global $clock (mut i64) (i64.const 0))
  ;; How often the policy asked for random numbers.
  (global $seeds (mut i32) (i32.const 0))
  ;; The address of the last words. 0 if there are none. Each interface has its own last words, because each interface
  ;; has its own copy of this module.
  (global $words (mut i32) (i32.const 0))
  ;; Whether the policy's allocator is at work for this module. An allocator without memory writes to standard error.
  (global $allocates (mut i32) (i32.const 0))

  ;; Begins the last words. The host looks at addresses that are multiples of 16.
  (func $begin
    (if (global.get $words) (then return))
    (global.set $allocates (i32.const 1))
    (global.set $words (call $realloc (i32.const 0) (i32.const 0) (i32.const 16) (i32.const 1024)))
    (global.set $allocates (i32.const 0))
    (i64.store (global.get $words) (i64.const 0x73616c3a736f616b)) ;; "kaos:las"
    (i64.store offset=8 (global.get $words) (i64.const 0x3a7364726f772d74)) ;; "t-words:"
    (i32.store offset=16 (global.get $words) (i32.const 0)))

  ;; Adds a text to the last words, which keep their last 1,000 bytes: a message of an error comes after all logs.
  (func $keep (param $from i32) (param $size i32)
    (local $text i32) (local $length i32) (local $excess i32)
    (if (global.get $allocates) (then return))
    (call $begin)
    (local.set $text (i32.add (global.get $words) (i32.const 20)))
    (local.set $length (i32.load offset=16 (global.get $words)))
    (if (i32.gt_u (local.get $size) (i32.const 1000)) (then (local.set $size (i32.const 1000))))
    (local.set $excess (i32.sub (i32.add (local.get $length) (local.get $size)) (i32.const 1000)))
    (if (i32.gt_s (local.get $excess) (i32.const 0))
      (then
        (local.set $length (i32.sub (local.get $length) (local.get $excess)))
        (memory.copy (local.get $text) (i32.add (local.get $text) (local.get $excess)) (local.get $length))))
    (memory.copy (i32.add (local.get $text) (local.get $length)) (local.get $from) (local.get $size))
    (i32.store offset=16 (global.get $words) (i32.add (local.get $length) (local.get $size))))

  ;; Adds eight bytes of a text, for which this module has no data.
  (func $say (param $text i64)
    (local $length i32)
    (call $begin)
    (local.set $length (i32.load offset=16 (global.get $words)))
    (i64.store
      (i32.add (i32.add (global.get $words) (i32.const 20)) (local.get $length)) (local.get $text))
    (i32.store offset=16 (global.get $words) (i32.add (local.get $length) (i32.const 8))))

  ;; Stores an empty list or text.
  (func $empty (param $to i32)
    (i32.store (local.get $to) (i32.const 0))
    (i32.store offset=4 (local.get $to) (i32.const 0)))

  ;; Stores success without a value, or the absence of an optional value.
  (func $nothing (param $to i32) (i32.store8 (local.get $to) (i32.const 0)))

  ;; Stores the error `closed` of a stream. The error is at the offset `payload`.
  (func $closed (param $to i32) (param $payload i32)
    (i32.store8 (local.get $to) (i32.const 1))
    (i32.store8 (i32.add (local.get $to) (local.get $payload)) (i32.const 1)))

  ;; Stores a seed: a list of bytes that are all 42.
  (func $bytes (param $size i64) (param $to i32)
    (local $at i32)
    (call $seed)
    (local.set $at
      (call $realloc (i32.const 0) (i32.const 0) (i32.const 1) (i32.wrap_i64 (local.get $size))))
    (memory.fill (local.get $at) (i32.const 42) (i32.wrap_i64 (local.get $size)))
    (i32.store (local.get $to) (local.get $at))
    (i32.store offset=4 (local.get $to) (i32.wrap_i64 (local.get $size))))

  (func $exit
    (call $say (i64.const 0x696c6f7020656874)) ;; "the poli"
    (call $say (i64.const 0x6465646e65207963)) ;; "cy ended"
    (call $say (i64.const 0x6f72702073746920)) ;; " its pro"
    (call $say (i64.const 0x7469203a73736563)) ;; "cess: it"
    (call $say (i64.const 0x6572207473756d20)) ;; " must re"
    (call $say (i64.const 0x206e61206e727574)) ;; "turn an "
    (call $say (i64.const 0x2020726577736e61)) ;; "answer  "
    unreachable)

  ;; Lets the policy ask for random numbers once. The second request ends the policy.
  (func $seed
    (if (global.get $seeds)
      (then
        (call $say (i64.const 0x696c6f7020656874)) ;; "the poli"
        (call $say (i64.const 0x64656b7361207963)) ;; "cy asked"
        (call $say (i64.const 0x6e617220726f6620)) ;; " for ran"
        (call $say (i64.const 0x626d756e206d6f64)) ;; "dom numb"
        (call $say (i64.const 0x737469203a737265)) ;; "ers: its"
        (call $say (i64.const 0x20726577736e6120)) ;; " answer "
        (call $say (i64.const 0x706564207473756d)) ;; "must dep"
        (call $say (i64.const 0x796c6e6f20646e65)) ;; "end only"
        (call $say (i64.const 0x20737469206e6f20)) ;; " on its "
        (call $say (i64.const 0x2020207475706e69)) ;; "input   "
        unreachable))
    (global.set $seeds (i32.const 1)))

  ;; wasi:cli: no arguments, no variables, no folder, no terminal.
  (func (export "get-environment") (param i32) (call $empty (local.get 0)))
  (func (export "get-arguments") (param i32) (call $empty (local.get 0)))
  (func (export "initial-cwd") (param i32) (call $nothing (local.get 0)))
  (func (export "exit") (param i32) (call $exit))
  (func (export "exit-with-code") (param i32) (call $exit))
  (func (export "get-stdin") (result i32) (i32.const 0))
  (func (export "get-stdout") (result i32) (i32.const 1))
  (func (export "get-stderr") (result i32) (i32.const 2))
  (func (export "get-terminal-stdin") (param i32) (call $nothing (local.get 0)))
  (func (export "get-terminal-stdout") (param i32) (call $nothing (local.get 0)))
  (func (export "get-terminal-stderr") (param i32) (call $nothing (local.get 0)))
  (func (export "[resource-drop]terminal-input") (param i32))
  (func (export "[resource-drop]terminal-output") (param i32))

  ;; wasi:io/error
  (func (export "[method]error.to-debug-string") (param i32 i32) (call $empty (local.get 1)))
  (func (export "[resource-drop]error") (param i32))

  ;; wasi:io/poll: everything is ready at once. An empty list ends the policy, as WASI demands.
  (func (export "[method]pollable.ready") (param i32) (result i32) (i32.const 1))
  (func (export "[method]pollable.block") (param i32))
  (func (export "[resource-drop]pollable") (param i32))
  (func (export "poll") (param $list i32) (param $count i32) (param $to i32)
    (local $at i32)
    (if (i32.eqz (local.get $count))
      (then
        (call $say (i64.const 0x696c6f7020656874)) ;; "the poli"
        (call $say (i64.const 0x7374696177207963)) ;; "cy waits"
        (call $say (i64.const 0x206e6120726f6620)) ;; " for an "
        (call $say (i64.const 0x62202c746e657665)) ;; "event, b"
        (call $say (i64.const 0x737473696c207475)) ;; "ut lists"
        (call $say (i64.const 0x6e657665206f6e20)) ;; " no even"
        (call $say (i64.const 0x2020202020202074)) ;; "t       "
        unreachable))
    (local.set $at (call $realloc (i32.const 0) (i32.const 0) (i32.const 4) (i32.const 4)))
    (i32.store (local.get $at) (i32.const 0))
    (i32.store (local.get $to) (local.get $at))
    (i32.store offset=4 (local.get $to) (i32.const 1)))

  ;; wasi:io/streams: input is at its end.
  (func (export "[method]input-stream.read") (param i32 i64 i32) (call $closed (local.get 2) (i32.const 4)))
  (func (export "[method]input-stream.blocking-read") (param i32 i64 i32) (call $closed (local.get 2) (i32.const 4)))
  (func (export "[method]input-stream.skip") (param i32 i64 i32) (call $closed (local.get 2) (i32.const 8)))
  (func (export "[method]input-stream.blocking-skip") (param i32 i64 i32) (call $closed (local.get 2) (i32.const 8)))
  (func (export "[method]input-stream.subscribe") (param i32) (result i32) (i32.const 0))
  (func (export "[resource-drop]input-stream") (param i32))

  ;; wasi:io/streams: output is taken, and only that to standard error is kept.
  (func $write (export "[method]output-stream.write") (param $stream i32) (param $from i32) (param $size i32) (param $to i32)
    (if (i32.eq (local.get $stream) (i32.const 2)) (then (call $keep (local.get $from) (local.get $size))))
    (call $nothing (local.get $to)))
  (func (export "[method]output-stream.blocking-write-and-flush") (param i32 i32 i32 i32)
    (call $write (local.get 0) (local.get 1) (local.get 2) (local.get 3)))
  (func (export "[method]output-stream.check-write") (param i32) (param $to i32)
    (call $nothing (local.get $to))
    (i64.store offset=8 (local.get $to) (i64.const 65536)))
  (func (export "[method]output-stream.flush") (param i32 i32) (call $nothing (local.get 1)))
  (func (export "[method]output-stream.blocking-flush") (param i32 i32) (call $nothing (local.get 1)))
  (func (export "[method]output-stream.write-zeroes") (param i32 i64 i32) (call $nothing (local.get 2)))
  (func (export "[method]output-stream.blocking-write-zeroes-and-flush") (param i32 i64 i32) (call $nothing (local.get 2)))
  (func (export "[method]output-stream.splice") (param i32 i32 i64 i32) (call $closed (local.get 3) (i32.const 8)))
  (func (export "[method]output-stream.blocking-splice") (param i32 i32 i64 i32) (call $closed (local.get 3) (i32.const 8)))
  (func (export "[method]output-stream.subscribe") (param i32) (result i32) (i32.const 0))
  (func (export "[resource-drop]output-stream") (param i32))

  ;; wasi:clocks/monotonic-clock: time passes only when the policy looks at the clock or waits.
  (func $now (export "now") (result i64)
    (global.set $clock (i64.add (global.get $clock) (i64.const 1000)))
    (global.get $clock))
  (func (export "resolution") (result i64) (i64.const 1000))
  (func (export "subscribe-duration") (param i64) (result i32)
    (global.set $clock (i64.add (global.get $clock) (local.get 0)))
    (i32.const 0))
  (func (export "subscribe-instant") (param i64) (result i32)
    (if (i64.gt_u (local.get 0) (global.get $clock)) (then (global.set $clock (local.get 0))))
    (i32.const 0))

  ;; wasi:random: a runtime gets one seed from each interface, which is always the same.
  (func $number (result i64)
    (call $seed)
    (i64.const 0x2a2a2a2a2a2a2a2a))
  (func (export "get-random-u64") (result i64) (call $number))
  (func (export "get-insecure-random-u64") (result i64) (call $number))
  (func (export "get-random-bytes") (param i64 i32) (call $bytes (local.get 0) (local.get 1)))
  (func (export "get-insecure-random-bytes") (param i64 i32) (call $bytes (local.get 0) (local.get 1)))
  (func (export "insecure-seed") (param i32)
    (i64.store (local.get 0) (i64.const 0x2a2a2a2a2a2a2a2a))
    (i64.store offset=8 (local.get 0) (i64.const 0x2a2a2a2a2a2a2a2a)))

  ;; wasi:filesystem/preopens: no folder is open.
  (func (export "get-directories") (param i32) (call $empty (local.get 0))))
