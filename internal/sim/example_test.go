package sim_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/concord-go/concord/internal/sim"
)

// Two people switch a lamp over a slow network. Each sends the state it wants the lamp to have, and
// the last message to arrive wins. Can the lamp be on after both have switched it off?
func Example() {
	history := func(w *sim.World) {
		w.Faults = sim.Faults{Delay: 10 * time.Millisecond, Jitter: 100 * time.Millisecond}
		lamp, wanted := 0, 0
		w.Can("switch", func(a sim.Args) {
			person, to := a.Int(0, 2), a.Int(1, 2)
			wanted = to
			w.Send(person, 2, to, func() { lamp = to })
		})
		for range 10 {
			w.Act(w.Moment(time.Second), "switch", w.Rand().IntN(2), w.Rand().IntN(2))
		}
		w.Always("lamp on or off", func() error {
			if lamp > 1 {
				return errors.New("it burns twice")
			}
			return nil
		})
		w.Until(time.Second)
		w.Calm()
		w.Eventually(time.Second, "as was wanted last", func() bool { return lamp == wanted })
	}
	f := sim.Find(sim.Seeds{First: 1, Count: 100}, history)
	fmt.Println(f.Text)
	fmt.Println(f.Short.Acts(), "of", f.Whole.Acts(), "acts are enough")
	// Output:
	// not as was wanted last within 1s
	// 2 of 10 acts are enough
}
