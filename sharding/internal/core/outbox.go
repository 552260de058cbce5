package core

import (
	"slices"
	"time"
)

// shareOfBuffer is the divisor for the part of a bound that one shard may use, so that an
// unavailable shard does not starve others.
const shareOfBuffer = 8

// outbox holds the deliveries of this region to one shard: messages that are sent again until the
// host confirms that they were handled.
//
// Invariant: a delivery is here until it is confirmed or its caller gives up, so nothing but the
// end of this region loses it.
type outbox struct {
	deliveries map[uint64]*delivery
	order      []*delivery // as they began; concluded ones are removed later
	size       int         // bytes of all deliveries
	scan       time.Time   // when to look for deliveries that are due
}

type delivery struct {
	BeginDelivery
	sent      uint64        // token of the tenure under which it was last sent; 0: not sent
	pause     time.Duration // until it is sent again under the same tenure
	due       time.Time
	concluded bool
}

// begin accepts a delivery, unless too many are not confirmed.
func (s *shard) begin(ev BeginDelivery) {
	c, o := s.r.cfg, &s.outbox
	switch {
	case s.r.delivering >= c.Buffer, len(o.deliveries) >= max(1, c.Buffer/shareOfBuffer),
		s.r.deliveringBytes+ev.Body.Size > c.BufferBytes,
		o.size+ev.Body.Size > c.BufferBytes/shareOfBuffer:
		s.r.emit(Conclude{s.n, ev.Number, ev.Body, Full})
		return
	case o.deliveries[ev.Number] != nil:
		return
	case o.deliveries == nil:
		o.deliveries = map[uint64]*delivery{}
	}
	d := &delivery{BeginDelivery: ev, pause: c.Resend}
	o.deliveries[ev.Number], o.order = d, append(o.order, d)
	o.size += ev.Body.Size
	s.r.delivering++
	s.r.deliveringBytes += ev.Body.Size
	if s.to != 0 {
		s.sendDelivery(d)
	}
}

// sendDelivery sends a delivery to the known tenure.
func (s *shard) sendDelivery(d *delivery) {
	if s.scan.IsZero() {
		s.scan = s.r.now.Add(s.r.cfg.Repeat)
	}
	d.sent, d.due = s.to, s.r.now.Add(d.pause)
	body, again := d.Body, d.Again
	d.Again = true
	if s.host == s.r.self {
		s.accept(s.r.self, body, d.Number, again)
		return
	}
	s.r.tell(s.host, Data{Shard: s.n, Token: s.to, Body: body, Delivery: d.Number, Again: again})
}

// onNoCredit sends a delivery at the next scan.
func (s *shard) onNoCredit(ev NoCredit) {
	s.onBlocked(ev.Token)
	if d := s.deliveries[ev.Number]; d != nil && d.sent == ev.Token {
		d.sent, d.due, d.Again = 0, s.r.now, ev.Again
	}
}

// redeliver sends, in order, the deliveries that were not sent under the known tenure.
func (s *shard) redeliver() {
	for _, d := range slices.Clone(s.order) {
		if !d.concluded && d.sent != s.to {
			d.pause = s.r.cfg.Resend
			s.sendDelivery(d)
		}
	}
}

// resend sends deliveries that were not confirmed in time. The pause doubles each time, because the
// message may be in a long mailbox, or fail each time.
func (s *shard) resend() {
	if s.to == 0 || s.scan.IsZero() || s.r.now.Before(s.scan) {
		return
	}
	s.scan = s.r.now.Add(s.r.cfg.Repeat)
	for _, d := range slices.Clone(s.order) {
		if !d.concluded && !s.r.now.Before(d.due) {
			if d.sent == s.to {
				d.pause = min(2*d.pause, s.r.cfg.MaxResend)
			}
			s.sendDelivery(d)
		}
	}
	s.compact()
}

// onConfirm concludes a delivery.
func (s *shard) onConfirm(number uint64) {
	if d := s.deliveries[number]; d != nil && d.sent != 0 {
		s.conclude(d)
		s.r.emit(Conclude{s.n, number, d.Body, Confirmed})
	}
}

// endDelivery forgets a delivery whose caller has given up.
func (s *shard) endDelivery(number uint64) {
	if d := s.deliveries[number]; d != nil {
		s.conclude(d)
	}
}

func (s *shard) conclude(d *delivery) {
	d.concluded = true
	delete(s.deliveries, d.Number)
	s.size -= d.Body.Size
	s.r.delivering--
	s.r.deliveringBytes -= d.Body.Size
	if len(s.order) > 2*len(s.deliveries)+16 || len(s.deliveries) == 0 {
		s.compact()
	}
}

// compact removes concluded deliveries.
func (s *shard) compact() {
	s.order = slices.DeleteFunc(s.order, func(d *delivery) bool { return d.concluded })
	if len(s.order) == 0 {
		s.outbox = outbox{}
	}
}

// abandon removes and returns the deliveries that are not confirmed.
func (s *shard) abandon() (out []Conclude) {
	for _, d := range s.order {
		if d.concluded {
			continue
		}
		outcome := Unsent
		if d.Again {
			outcome = InDoubt
		}
		out = append(out, Conclude{s.n, d.Number, d.Body, outcome})
	}
	for _, c := range out {
		s.endDelivery(c.Number)
	}
	return out
}
