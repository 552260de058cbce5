// Package history records the requests of clients to a system and its answers, and checks whether a
// correct system could have given them.
//
//	var rec history.Recorder[history.RegisterOp, history.RegisterResult]
//	op := rec.Begin(client, history.RegisterOp{Key: "x", Kind: history.Write, Value: "1"})
//	if err := write("x", "1"); err != nil {
//		op.Unknown() // may have taken effect, may do so yet
//	} else {
//		op.End(history.RegisterResult{})
//	}
//	history.Check(t, history.Register(), rec.Operations())
//
// # Duties of the caller
//
//  1. Call Begin before the request is sent and End after the answer has arrived: a history is
//     judged by the real-time order of operations.
//  2. An error is an Unknown unless it proves that nothing happened; in that case call Discard.
//     Report a client that dies silently with Crash.
//  3. A client performs one operation at a time. Use several clients for concurrency.
//  4. Checking is exponential in the number of overlapping operations. Use at most ten clients and
//     a thousand operations per key, and many keys.
//
// The order is that of the calls of Begin and End, not of clocks, so it also works in virtual time,
// where many operations happen at the same time.
//
// # Models
//
// [Register] is a key-value store with conditional writes. [Lease] is one lease with expiry,
// unknown outcomes, and a target that is fenced by it.
//
// The checker is porcupine by Anish Athalye, after Wing and Gong (1993) and Lowe (2017).
//
// docs/testing.md names the other parts of the testkit.
package history
