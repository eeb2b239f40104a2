;; Answers the calls of WASI preview 1 in a policy. `policy build` merges this module into a policy that was built for
;; WASI, so that the component imports nothing. `wasi.wasm` has the same module as bytes, and a test compares both.
;;
;; Every answer is the same in every sandbox. The policy has no arguments, no environment variables and no files. Time
;; stands still at 1970-01-01, and the monotonic clock advances only when the policy looks at it or waits. The first
;; random bytes, the seed of a runtime, are fixed, and asking for more ends the policy. What the policy writes is
;; dropped. But from a write to standard error on that begins with the first letters of `panic` or `fatal`, the text is
;; kept. If the policy then ends, the text is its last words, which the host reads (host/policy/src/engine/last_words.rs).
;;
;; The conversion to a component allows no data segments in this module, so texts are instructions.
(module
  (import "env" "memory" (memory 0))

  ;; The nanoseconds of the monotonic clock.
  (global $clock (mut i64) (i64.const 0))
  ;; How often the policy asked for random bytes.
  (global $seeds (mut i32) (i32.const 0))
  ;; Whether the policy has begun to write the text of a fatal error.
  (global $keeps (mut i32) (i32.const 0))
  ;; The host finds the kept text behind these two globals, in this order: the mark, the length of the text in bytes, and
  ;; the text. The text has up to 512 bytes, eight in each global. The newest bytes are in the last global. The text is
  ;; in no memory, because the policy owns all of its memory: a heap can take every page that follows, and expects zeros
  ;; there.
  (global $mark0 (mut i64) (i64.const 0x73616c3a736f616b)) ;; "kaos:las"
  (global $mark1 (mut i64) (i64.const 0x3a7364726f772d74)) ;; "t-words:"
  (global $kept (mut i32) (i32.const 0))
  (global $t0 (mut i64) (i64.const 0)) (global $t1 (mut i64) (i64.const 0)) (global $t2 (mut i64) (i64.const 0))
  (global $t3 (mut i64) (i64.const 0)) (global $t4 (mut i64) (i64.const 0)) (global $t5 (mut i64) (i64.const 0))
  (global $t6 (mut i64) (i64.const 0)) (global $t7 (mut i64) (i64.const 0)) (global $t8 (mut i64) (i64.const 0))
  (global $t9 (mut i64) (i64.const 0)) (global $t10 (mut i64) (i64.const 0)) (global $t11 (mut i64) (i64.const 0))
  (global $t12 (mut i64) (i64.const 0)) (global $t13 (mut i64) (i64.const 0)) (global $t14 (mut i64) (i64.const 0))
  (global $t15 (mut i64) (i64.const 0)) (global $t16 (mut i64) (i64.const 0)) (global $t17 (mut i64) (i64.const 0))
  (global $t18 (mut i64) (i64.const 0)) (global $t19 (mut i64) (i64.const 0)) (global $t20 (mut i64) (i64.const 0))
  (global $t21 (mut i64) (i64.const 0)) (global $t22 (mut i64) (i64.const 0)) (global $t23 (mut i64) (i64.const 0))
  (global $t24 (mut i64) (i64.const 0)) (global $t25 (mut i64) (i64.const 0)) (global $t26 (mut i64) (i64.const 0))
  (global $t27 (mut i64) (i64.const 0)) (global $t28 (mut i64) (i64.const 0)) (global $t29 (mut i64) (i64.const 0))
  (global $t30 (mut i64) (i64.const 0)) (global $t31 (mut i64) (i64.const 0)) (global $t32 (mut i64) (i64.const 0))
  (global $t33 (mut i64) (i64.const 0)) (global $t34 (mut i64) (i64.const 0)) (global $t35 (mut i64) (i64.const 0))
  (global $t36 (mut i64) (i64.const 0)) (global $t37 (mut i64) (i64.const 0)) (global $t38 (mut i64) (i64.const 0))
  (global $t39 (mut i64) (i64.const 0)) (global $t40 (mut i64) (i64.const 0)) (global $t41 (mut i64) (i64.const 0))
  (global $t42 (mut i64) (i64.const 0)) (global $t43 (mut i64) (i64.const 0)) (global $t44 (mut i64) (i64.const 0))
  (global $t45 (mut i64) (i64.const 0)) (global $t46 (mut i64) (i64.const 0)) (global $t47 (mut i64) (i64.const 0))
  (global $t48 (mut i64) (i64.const 0)) (global $t49 (mut i64) (i64.const 0)) (global $t50 (mut i64) (i64.const 0))
  (global $t51 (mut i64) (i64.const 0)) (global $t52 (mut i64) (i64.const 0)) (global $t53 (mut i64) (i64.const 0))
  (global $t54 (mut i64) (i64.const 0)) (global $t55 (mut i64) (i64.const 0)) (global $t56 (mut i64) (i64.const 0))
  (global $t57 (mut i64) (i64.const 0)) (global $t58 (mut i64) (i64.const 0)) (global $t59 (mut i64) (i64.const 0))
  (global $t60 (mut i64) (i64.const 0)) (global $t61 (mut i64) (i64.const 0)) (global $t62 (mut i64) (i64.const 0))
  (global $t63 (mut i64) (i64.const 0))

  ;; Adds eight bytes to the kept text.
  (func $push (param $bytes i64)
    (global.set $t0 (global.get $t1)) (global.set $t1 (global.get $t2))
    (global.set $t2 (global.get $t3)) (global.set $t3 (global.get $t4))
    (global.set $t4 (global.get $t5)) (global.set $t5 (global.get $t6))
    (global.set $t6 (global.get $t7)) (global.set $t7 (global.get $t8))
    (global.set $t8 (global.get $t9)) (global.set $t9 (global.get $t10))
    (global.set $t10 (global.get $t11)) (global.set $t11 (global.get $t12))
    (global.set $t12 (global.get $t13)) (global.set $t13 (global.get $t14))
    (global.set $t14 (global.get $t15)) (global.set $t15 (global.get $t16))
    (global.set $t16 (global.get $t17)) (global.set $t17 (global.get $t18))
    (global.set $t18 (global.get $t19)) (global.set $t19 (global.get $t20))
    (global.set $t20 (global.get $t21)) (global.set $t21 (global.get $t22))
    (global.set $t22 (global.get $t23)) (global.set $t23 (global.get $t24))
    (global.set $t24 (global.get $t25)) (global.set $t25 (global.get $t26))
    (global.set $t26 (global.get $t27)) (global.set $t27 (global.get $t28))
    (global.set $t28 (global.get $t29)) (global.set $t29 (global.get $t30))
    (global.set $t30 (global.get $t31)) (global.set $t31 (global.get $t32))
    (global.set $t32 (global.get $t33)) (global.set $t33 (global.get $t34))
    (global.set $t34 (global.get $t35)) (global.set $t35 (global.get $t36))
    (global.set $t36 (global.get $t37)) (global.set $t37 (global.get $t38))
    (global.set $t38 (global.get $t39)) (global.set $t39 (global.get $t40))
    (global.set $t40 (global.get $t41)) (global.set $t41 (global.get $t42))
    (global.set $t42 (global.get $t43)) (global.set $t43 (global.get $t44))
    (global.set $t44 (global.get $t45)) (global.set $t45 (global.get $t46))
    (global.set $t46 (global.get $t47)) (global.set $t47 (global.get $t48))
    (global.set $t48 (global.get $t49)) (global.set $t49 (global.get $t50))
    (global.set $t50 (global.get $t51)) (global.set $t51 (global.get $t52))
    (global.set $t52 (global.get $t53)) (global.set $t53 (global.get $t54))
    (global.set $t54 (global.get $t55)) (global.set $t55 (global.get $t56))
    (global.set $t56 (global.get $t57)) (global.set $t57 (global.get $t58))
    (global.set $t58 (global.get $t59)) (global.set $t59 (global.get $t60))
    (global.set $t60 (global.get $t61)) (global.set $t61 (global.get $t62))
    (global.set $t62 (global.get $t63)) (global.set $t63 (local.get $bytes)))

  ;; Adds one byte to the kept text. The last global contains the bytes since the last multiple of eight.
  (func $keep_byte (param $byte i32)
    (local $at i64)
    (if (i32.ge_u (global.get $kept) (i32.const 512)) (then (return)))
    (local.set $at (i64.extend_i32_u (i32.shl (i32.and (global.get $kept) (i32.const 7)) (i32.const 3))))
    (if (i64.eqz (local.get $at)) (then (call $push (i64.const 0))))
    (global.set $t63
      (i64.or (global.get $t63) (i64.shl (i64.extend_i32_u (local.get $byte)) (local.get $at))))
    (global.set $kept (i32.add (global.get $kept) (i32.const 1))))

  (func $keep (param $from i32) (param $size i32)
    (block $done
      (loop $next
        (br_if $done (i32.eqz (local.get $size)))
        (call $keep_byte (i32.load8_u (local.get $from)))
        (local.set $from (i32.add (local.get $from) (i32.const 1)))
        (local.set $size (i32.sub (local.get $size) (i32.const 1)))
        (br $next))))

  ;; The address of the last words. 0 if there are none.
  (global $words (mut i32) (i32.const 0))

  ;; Begins the last words, on a new page of the memory. The caller ends the policy, so nothing else takes this page.
  (func $begin
    (global.set $words (i32.shl (memory.grow (i32.const 1)) (i32.const 16)))
    (i64.store (global.get $words) (i64.const 0x73616c3a736f616b)) ;; "kaos:las"
    (i64.store offset=8 (global.get $words) (i64.const 0x3a7364726f772d74))) ;; "t-words:"

  ;; Adds eight bytes of a text to the last words.
  (func $say (param $text i64)
    (local $length i32)
    (local.set $length (i32.load offset=16 (global.get $words)))
    (i64.store offset=20 (i32.add (global.get $words) (local.get $length)) (local.get $text))
    (i32.store offset=16 (global.get $words) (i32.add (local.get $length) (i32.const 8))))

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
    (if (i32.eqz (global.get $kept))
      (then
        (call $begin)
        (call $say (i64.const 0x696c6f7020656874)) ;; "the poli"
        (call $say (i64.const 0x6465646e65207963)) ;; "cy ended"
        (call $say (i64.const 0x6f72702073746920)) ;; " its pro"
        (call $say (i64.const 0x7469203a73736563)) ;; "cess: it"
        (call $say (i64.const 0x6572207473756d20)) ;; " must re"
        (call $say (i64.const 0x206e61206e727574)) ;; "turn an "
        (call $say (i64.const 0x2020726577736e61)))) ;; "answer  "
    ;; The conversion to a component keeps only globals that a function reads.
    (drop (global.get $mark0))
    (drop (global.get $mark1))
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
              (then (global.set $keeps (i32.const 1))))))
        (if (i32.and (i32.eq (local.get $file) (i32.const 2)) (global.get $keeps))
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
