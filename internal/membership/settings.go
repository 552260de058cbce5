package membership

import "time"

// settings are the settings of the protocol. See defaultSettings for the values and their reasons.
type settings struct {
	stampWait   time.Duration
	settle      time.Duration
	settleGap   time.Duration
	settleFor   time.Duration
	steady      time.Duration
	idle        time.Duration
	restGap     time.Duration
	grace       time.Duration
	verdictGap  time.Duration
	verdicts    int
	strangers   int
	maxSkew     time.Duration
	maxMembers  int
	maxRetired  int
	strangerGap time.Duration

	patience, joinPatience                   time.Duration
	retry, roundTrip, permitFor              time.Duration
	together                                 int
	contactGap, contactPer, nameGap, pollGap time.Duration
	askGap, askOften, askSeldom              time.Duration
	lostGap, forget, forgetNamed             time.Duration
	maxLost, maxNamed, maxOthers, maxDropped int
}

func defaultSettings() settings {
	return settings{
		// How long a new member waits for the stamps of the members it sees.
		stampWait: 2 * time.Second,
		// The interval of hellos to a peer whose stamp is unknown, and how long it applies: longer
		// than a provider's round, to cover a peer that lists us later than we list it.
		settle:    250 * time.Millisecond,
		settleGap: 10 * time.Millisecond, // average time between two such hellos
		settleFor: 10 * time.Second,
		// The intervals after that, and in normal operation. In a cluster of more than ten members
		// the latter grows, so that a member sends at most one hello and one answer per restGap. An
		// expelled member also sends a hello every restGap. As soon as one peer disowns it, it asks
		// all peers, and finds out within two verdicts.
		steady:  2 * time.Second,
		idle:    7 * time.Second,
		restGap: 700 * time.Millisecond,
		// How long a peer may take to list us for the first time before that counts against us.
		grace: 20 * time.Second,
		// The number of consecutive verdicts by which a peer disowns us, and the time between them.
		verdicts:   2,
		verdictGap: 500 * time.Millisecond,
		// The number of hellos of unlisted members answered per strangerGap.
		strangers:   8,
		strangerGap: time.Second,
		// A stamp further ahead of our clock is rejected: it would use up the numbers.
		maxSkew: 366 * 24 * time.Hour,
		// The maximum number of listed members, beyond which members are ignored, and of remembered
		// former incarnations.
		maxMembers: 10_000,
		maxRetired: 64,
		// How long evidence of a split must last, and our own view be unchanged, before a member
		// steps down: if one has dropped the other, and if there may be a join in progress. The
		// latter is above two rounds of every provider.
		patience:     defaultPatience,
		joinPatience: 10 * defaultPatience,
		// The interval of requests for a permit, the maximum age of a request when it is answered,
		// how long the giver stays for a member that does not come back, and for how many it waits
		// at once, if its fragment is not smaller than that; a quarter of it may be more.
		retry:     500 * time.Millisecond,
		roundTrip: 5 * time.Second,
		permitFor: 30 * time.Second,
		together:  4,
		// The interval of hellos to a member in conflict, with an addition for each such member;
		// how often it is sent the members we list; and the average time between questions to
		// members of our view whether they list us.
		contactGap: time.Second,
		contactPer: 20 * time.Millisecond,
		nameGap:    5 * time.Second,
		pollGap:    20 * time.Millisecond,
		// The interval of hellos to lost addresses, how long it applies, and its final value; the
		// average time between a member's hellos if it has lost many; and when addresses are
		// forgotten.
		askGap:      2 * time.Second,
		askOften:    2 * time.Minute,
		askSeldom:   time.Minute,
		lostGap:     100 * time.Millisecond,
		forget:      24 * time.Hour,
		forgetNamed: 10 * time.Minute,
		// The maximum numbers of lost addresses, of those named only by others, of members in
		// conflict, and of remembered dropped ids.
		maxLost:    256,
		maxNamed:   128,
		maxOthers:  256,
		maxDropped: 1024,
	}
}
