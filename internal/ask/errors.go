package ask

import "errors"

// ErrDeadLetter says that the target certainly did not get the message: no process of that name is
// registered where the PID points.
var ErrDeadLetter = errors.New("ask: no such actor")
