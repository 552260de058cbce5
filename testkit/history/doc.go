// Package history records what clients asked of a system and what they were told, and judges whether a
// correct system could have answered so.
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
//  1. Begin is called before the request leaves, End after the answer has come: what lies between two
//     operations in real time is what a history is judged by.
//  2. An error is an Unknown unless it proves that nothing happened; that is a Discard. A client that
//     dies without a word is told with Crash.
//  3. A client does one thing at a time. Concurrency needs several clients.
//  4. Checking is exponential in the number of operations that overlap. Keep to ten clients and a
//     thousand operations per key, and use many keys.
//
// Order is the order of the calls of Begin and End, not of clocks, so that it works in virtual time,
// where much happens at one moment.
//
// # Models
//
// [Register] is a key-value store with conditional writes. [Lease] is one lease with expiry, unknown
// outcomes, and a target that it fences. [Set] is judged element by element without a search: which
// added elements were lost, which were missing for a while, which appeared from nowhere.
//
// The checker is porcupine by Anish Athalye, after Wing and Gong (1993) and Lowe (2017).
package history
