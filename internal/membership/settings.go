package membership

import "time"

// settings of the protocol. See defaultSettings for the values and their reasons.
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
	contactGap, contactPer, nameGap, pollGap time.Duration
	askGap, askOften, askSeldom              time.Duration
	lostGap, forget, forgetNamed             time.Duration
	maxLost, maxNamed, maxOthers, maxDropped int
}

func defaultSettings() settings {
	return settings{
		// How long a newcomer waits for the stamps of the members it sees.
		stampWait: 2 * time.Second,
		// How often a peer is greeted that has not said its stamp, and for how long so often:
		// longer than a provider's round, so that a peer that lists us later than we list it is
		// caught.
		settle:    250 * time.Millisecond,
		settleGap: 10 * time.Millisecond, // on average, between two such hellos
		settleFor: 10 * time.Second,
		// How often it is greeted after that; and how often a peer with which all is well. In a
		// cluster of more than ten each is greeted more seldom, so that a member says no more than
		// one hello in restGap, and an answer. A member that was expelled greets somebody every
		// restGap too, asks everybody as soon as one disowns it, and finds out within two verdicts.
		steady:  2 * time.Second,
		idle:    7 * time.Second,
		restGap: 700 * time.Millisecond,
		// How long a peer that never listed us may take to do so before that counts against us.
		grace: 20 * time.Second,
		// How many times in a row a peer must disown us, and how far apart.
		verdicts:   2,
		verdictGap: 500 * time.Millisecond,
		// How many hellos of members not listed are answered per strangerGap.
		strangers:   8,
		strangerGap: time.Second,
		// A stamp further ahead of our clock is refused: it would use up the numbers.
		maxSkew: 366 * 24 * time.Hour,
		// Members listed beyond this are ignored; and how many former incarnations are remembered.
		maxMembers: 10_000,
		maxRetired: 64,
		// How long evidence of a split has to last before anybody gives way, and our own view to be
		// unchanged: if one has dropped the other, and if it may be a join in progress. The latter
		// is above two rounds of every provider.
		patience:     defaultPatience,
		joinPatience: 10 * defaultPatience,
		// How often a permit is asked for, how old a request may be that it answers, and how long
		// its giver stays for a member that does not come back.
		retry:     500 * time.Millisecond,
		roundTrip: 5 * time.Second,
		permitFor: 30 * time.Second,
		// How often a member is greeted with which we do not agree, with an addition for each such
		// member, and how often it is told whom we list; and how far apart the questions are, on
		// average, whether members of our view list us.
		contactGap: time.Second,
		contactPer: 20 * time.Millisecond,
		nameGap:    5 * time.Second,
		pollGap:    20 * time.Millisecond,
		// How often lost addresses are asked, for how long so often, and how seldom in the end;
		// how far apart a member's questions are, on average, when it has lost many; and when
		// addresses are forgotten.
		askGap:      2 * time.Second,
		askOften:    2 * time.Minute,
		askSeldom:   time.Minute,
		lostGap:     100 * time.Millisecond,
		forget:      24 * time.Hour,
		forgetNamed: 10 * time.Minute,
		// Lost addresses, how many of them may be named by others only, members in conflict, and
		// ids that we remember to have dropped.
		maxLost:    256,
		maxNamed:   128,
		maxOthers:  256,
		maxDropped: 1024,
	}
}
