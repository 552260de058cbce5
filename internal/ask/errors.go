package ask

import "errors"

// ErrDeadLetter means that the target certainly did not get the message: no process is registered
// under the PID.
var ErrDeadLetter = errors.New("ask: no such actor")
