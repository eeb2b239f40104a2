;; Answers the calls of WASI preview 1 in a policy. `policy build` merges this module into a policy that was built for
;; WASI, so that the component imports nothing. `wasi.wasm` has the same module as bytes, and a test compares both.
;;
;; Every answer is the same in every sandbox. The policy has no arguments, no environment variables and no files. Time
;; stands still at 1970-01-01, and the monotonic clock advances only when the policy looks at it or waits. The first
;; random bytes, the seed of a runtime, are fixed, and asking for more ends the policy. What the policy writes is
;; dropped. But from a write to standard error on that begins with the first letters of `panic` or `fatal`, the text is
;; kept as the policy's last words (wit/policy.wit), which the host reads when the policy ends.
;;
;; The conversion to a component allows no data segments in this module, so texts are instructions.
(module
  (import "env" "memory" (memory 0))

  ;; The nanoseconds of the monotonic clock.
  (global $clock (mut i64) (i64.const 0))
  ;; How often the policy asked for random bytes.
  (global $seeds (mut i32) (i32.const 0))
  ;; The address of the last words. 0 if there are none.
  (global $words (mut i32) (i32.const 0))

  ;; Begins the last words, on a new page of the memory: nothing is known about the memory in use.
  (func $begin
    (if (global.get $words) (then return))
    (global.set $words (i32.shl (memory.grow (i32.const 1)) (i32.const 16)))
    (i64.store (global.get $words) (i64.const 0x73616c3a736f616b)) ;; "kaos:las"
    (i64.store offset=8 (global.get $words) (i64.const 0x3a7364726f772d74)) ;; "t-words:"
    (i32.store offset=16 (global.get $words) (i32.const 0)))

  ;; Returns the address of the next byte of the last words.
  (func $end (result i32)
    (i32.add (i32.add (global.get $words) (i32.const 20)) (i32.load offset=16 (global.get $words))))

  (func $lengthen (param $bytes i32)
    (i32.store offset=16 (global.get $words)
      (i32.add (i32.load offset=16 (global.get $words)) (local.get $bytes))))

  ;; Adds eight bytes of a text.
  (func $say (param $text i64)
    (i64.store (call $end) (local.get $text))
    (call $lengthen (i32.const 8)))

  ;; Adds a text, up to 1,000 bytes in total.
  (func $keep (param $from i32) (param $size i32)
    (local $room i32)
    (local.set $room (i32.sub (i32.const 1000) (i32.load offset=16 (global.get $words))))
    (if (i32.gt_u (local.get $size) (local.get $room)) (then (local.set $size (local.get $room))))
    (memory.copy (call $end) (local.get $from) (local.get $size))
    (call $lengthen (local.get $size)))

  ;; Standard input, output and error exist, and no other file.
  (func $exists (param $file i32) (result i32)
    (i32.lt_u (local.get $file) (i32.const 3)))

  ;; Returns success for an existing file, and EBADF for all others.
  (func $known (param $file i32) (result i32)
    (select (i32.const 0) (i32.const 8) (call $exists (local.get $file))))

  (func $nothing (param $count i32) (param $size i32) (result i32)
    (i32.store (local.get $count) (i32.const 0))
    (i32.store (local.get $size) (i32.const 0))
    (i32.const 0))

  (func (export "args_sizes_get") (param i32 i32) (result i32) (call $nothing (local.get 0) (local.get 1)))
  (func (export "environ_sizes_get") (param i32 i32) (result i32) (call $nothing (local.get 0) (local.get 1)))
  (func (export "args_get") (param i32 i32) (result i32) (i32.const 0))
  (func (export "environ_get") (param i32 i32) (result i32) (i32.const 0))
  (func (export "sched_yield") (result i32) (i32.const 0))

  (func (export "clock_res_get") (param i32 i32) (result i32)
    (i64.store (local.get 1) (i64.const 1000))
    (i32.const 0))

  ;; Clock 0 is the time of day. All other clocks are monotonic.
  (func (export "clock_time_get") (param $id i32) (param i64) (param $to i32) (result i32)
    (global.set $clock (i64.add (global.get $clock) (i64.const 1000)))
    (i64.store (local.get $to) (select (global.get $clock) (i64.const 0) (local.get $id)))
    (i32.const 0))

  (func (export "random_get") (param $to i32) (param $size i32) (result i32)
    (if (global.get $seeds)
      (then
        (call $begin)
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
    (global.set $seeds (i32.const 1))
    (memory.fill (local.get $to) (i32.const 42) (local.get $size))
    (i32.const 0))

  ;; Waits for the first clock in a list of events. Nothing else ever happens.
  (func (export "poll_oneoff") (param $in i32) (param $out i32) (param $count i32) (param $happened i32) (result i32)
    (local $until i64)
    (loop $next
      (if (i32.eqz (local.get $count))
        (then
          (call $begin)
          (call $say (i64.const 0x696c6f7020656874)) ;; "the poli"
          (call $say (i64.const 0x7374696177207963)) ;; "cy waits"
          (call $say (i64.const 0x706e6920726f6620)) ;; " for inp"
          (call $say (i64.const 0x2074616874207475)) ;; "ut that "
          (call $say (i64.const 0x6f6320726576656e)) ;; "never co"
          (call $say (i64.const 0x202020202073656d)) ;; "mes     "
          unreachable))
      (if (i32.load8_u offset=8 (local.get $in))
        (then
          (local.set $in (i32.add (local.get $in) (i32.const 48)))
          (local.set $count (i32.sub (local.get $count) (i32.const 1)))
          (br $next))))
    (local.set $until (i64.load offset=24 (local.get $in)))
    (if (i32.eqz (i32.and (i32.load16_u offset=40 (local.get $in)) (i32.const 1)))
      (then (local.set $until (i64.add (global.get $clock) (local.get $until)))))
    (if (i64.gt_u (local.get $until) (global.get $clock)) (then (global.set $clock (local.get $until))))
    (memory.fill (local.get $out) (i32.const 0) (i32.const 32))
    (i64.store (local.get $out) (i64.load (local.get $in)))
    (i32.store (local.get $happened) (i32.const 1))
    (i32.const 0))

  (func (export "proc_exit") (param i32)
    (if (i32.eqz (global.get $words))
      (then
        (call $begin)
        (call $say (i64.const 0x696c6f7020656874)) ;; "the poli"
        (call $say (i64.const 0x6465646e65207963)) ;; "cy ended"
        (call $say (i64.const 0x6f72702073746920)) ;; " its pro"
        (call $say (i64.const 0x7469203a73736563)) ;; "cess: it"
        (call $say (i64.const 0x6572207473756d20)) ;; " must re"
        (call $say (i64.const 0x206e61206e727574)) ;; "turn an "
        (call $say (i64.const 0x2020726577736e61)))) ;; "answer  "
    unreachable)

  (func (export "fd_write") (param $file i32) (param $list i32) (param $count i32) (param $written i32) (result i32)
    (local $from i32) (local $size i32) (local $all i32)
    (if (i32.eqz (call $exists (local.get $file))) (then (return (i32.const 8))))
    (block $done
      (loop $next
        (br_if $done (i32.eqz (local.get $count)))
        (local.set $from (i32.load (local.get $list)))
        (local.set $size (i32.load offset=4 (local.get $list)))
        (local.set $all (i32.add (local.get $all) (local.get $size)))
        (if (i32.and (i32.eq (local.get $file) (i32.const 2)) (i32.gt_u (local.get $size) (i32.const 3)))
          (then
            (if (i32.or
                  (i32.eq (i32.load (local.get $from)) (i32.const 0x696e6170)) ;; "pani"
                  (i32.eq (i32.load (local.get $from)) (i32.const 0x61746166))) ;; "fata"
              (then (call $begin)))))
        (if (i32.and (i32.eq (local.get $file) (i32.const 2)) (i32.ne (global.get $words) (i32.const 0)))
          (then (call $keep (local.get $from) (local.get $size))))
        (local.set $list (i32.add (local.get $list) (i32.const 8)))
        (local.set $count (i32.sub (local.get $count) (i32.const 1)))
        (br $next)))
    (i32.store (local.get $written) (local.get $all))
    (i32.const 0))

  ;; Standard input is empty.
  (func (export "fd_read") (param $file i32) (param i32 i32) (param $read i32) (result i32)
    (i32.store (local.get $read) (i32.const 0))
    (call $known (local.get $file)))

  ;; The open files are character devices (2).
  (func (export "fd_fdstat_get") (param $file i32) (param $to i32) (result i32)
    (memory.fill (local.get $to) (i32.const 0) (i32.const 24))
    (i32.store8 (local.get $to) (i32.const 2))
    (call $known (local.get $file)))
  (func (export "fd_filestat_get") (param $file i32) (param $to i32) (result i32)
    (memory.fill (local.get $to) (i32.const 0) (i32.const 64))
    (i32.store8 offset=16 (local.get $to) (i32.const 2))
    (call $known (local.get $file)))
  (func (export "fd_close") (param i32) (result i32) (call $known (local.get 0)))
  (func (export "fd_sync") (param i32) (result i32) (call $known (local.get 0)))
  (func (export "fd_fdstat_set_flags") (param i32 i32) (result i32) (call $known (local.get 0)))

  ;; No folder is open (EBADF), and character devices have no positions (ESPIPE).
  (func (export "fd_prestat_get") (param i32 i32) (result i32) (i32.const 8))
  (func (export "fd_prestat_dir_name") (param i32 i32 i32) (result i32) (i32.const 8))
  (func (export "fd_readdir") (param i32 i32 i32 i64 i32) (result i32) (i32.const 8))
  (func (export "fd_filestat_set_size") (param i32 i64) (result i32) (i32.const 8))
  (func (export "fd_fdstat_set_rights") (param i32 i64 i64) (result i32) (i32.const 8))
  (func (export "fd_seek") (param i32 i64 i32 i32) (result i32) (i32.const 70))
  (func (export "fd_tell") (param i32 i32) (result i32) (i32.const 70))
  (func (export "fd_pread") (param i32 i32 i32 i64 i32) (result i32) (i32.const 70))
  (func (export "fd_pwrite") (param i32 i32 i32 i64 i32) (result i32) (i32.const 70))

  ;; With `policy build --stub-wasi`, calls that need the outside world fail (ENOSYS).
  (func (export "path_create_directory") (param i32 i32 i32) (result i32) (i32.const 52))
  (func (export "path_filestat_get") (param i32 i32 i32 i32 i32) (result i32) (i32.const 52))
  (func (export "path_filestat_set_times") (param i32 i32 i32 i32 i64 i64 i32) (result i32) (i32.const 52))
  (func (export "path_link") (param i32 i32 i32 i32 i32 i32 i32) (result i32) (i32.const 52))
  (func (export "path_open") (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32) (i32.const 52))
  (func (export "path_readlink") (param i32 i32 i32 i32 i32 i32) (result i32) (i32.const 52))
  (func (export "path_remove_directory") (param i32 i32 i32) (result i32) (i32.const 52))
  (func (export "path_rename") (param i32 i32 i32 i32 i32 i32) (result i32) (i32.const 52))
  (func (export "path_symlink") (param i32 i32 i32 i32 i32) (result i32) (i32.const 52))
  (func (export "path_unlink_file") (param i32 i32 i32) (result i32) (i32.const 52))
  (func (export "sock_accept") (param i32 i32 i32) (result i32) (i32.const 52))
  (func (export "sock_recv") (param i32 i32 i32 i32 i32 i32) (result i32) (i32.const 52))
  (func (export "sock_send") (param i32 i32 i32 i32 i32) (result i32) (i32.const 52))
  (func (export "sock_shutdown") (param i32 i32) (result i32) (i32.const 52)))
