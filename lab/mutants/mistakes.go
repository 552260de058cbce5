package main

// mistakes are bugs in what a program is told about its mistakes and about outages.
func mistakes() []mutant {
	return []mutant{
		{
			name:   "cut off a member that does not exist",
			rule:   "a test that cuts off nobody fails",
			edits:  in("testkit", "return c.Member(i).Address", "return address(i)"),
			killer: killer{pkg: "./lab/suites/failuretest", run: "^TestRun_FailuresTellWhatWasSeen$"},
		},
		{
			name:   "repeat a long value of a configuration as a whole",
			rule:   "the error about a configuration is short even if a value is not",
			edits:  in("internal/settings", "len(line) > 2*lineEnds", "line != line"),
			killer: killer{pkg: "./internal/settings", run: "^TestJoin_isShort$"},
		},
		{
			name:   "say that a file is missing, but not which setting names it",
			rule:   "the error about a setting names it",
			edits:  in("node/internal/guard", "fmt.Errorf(\"SecretFile: %w\", err)", "err"),
			killer: killer{pkg: "./node", run: "^TestRemote_RefusesFilesThatCannotBeUsed$"},
		},
		{
			name:   "wait for ever for a Provider function",
			rule:   "a member ends beside a function of the application that does not return",
			edits:  in("node", "r.within(ctx, \"RunConfig.Provider\", func(", "<-shielded(ctx, func("),
			killer: killer{pkg: "./lab/noderun", run: "^TestRun_EndsBesideAFunctionThatDoesNotReturn$"},
		},
		{
			name:   "wait for a blocked function as long after SIGTERM",
			rule:   "a member ends beside a function of the application that does not return",
			edits:  in("node", "asked, over = nil, time.After(r.cfg.StopTimeout/2)", "asked, over = nil, nil"),
			killer: killer{pkg: "./node", run: "^TestWithin_TellsOfAFunctionThatDoesNotReturn$"},
		},
		{
			name:   "log each lease of a session that is lost",
			rule:   "an outage of the lease store is a few lines in the log",
			edits:  in("coordination", "l.named > mostNamed", "l.named < 0"),
			killer: killer{pkg: "./coordination", run: "TestLog_TheLossOfManyLeasesIsAFewLines"},
		},
		{
			name:   "restart an entity that panicked without a line",
			rule:   "a panic of the application's code is logged with its stack",
			edits:  in("sharding", "fmt.Sprintf(\"%T\", message)), slog.String(\"stack\", stack))", "fmt.Sprintf(\"%T\", message)))"),
			killer: killer{pkg: "./sharding", run: "TestLog_APanicOfAnEntityHasItsStack"},
		},
		{
			name:   "forget the stack of an instance that panicked",
			rule:   "a panic of the application's code is logged with its stack",
			edits:  in("singleton", "h.stack.Store(new(string(debug.Stack())))", "_ = debug.Stack"),
			killer: killer{pkg: "./singleton", run: "TestLog_APanicHasItsReasonAndItsStack"},
		},
		{
			name:   "call the outcome of an Ask unknown that was not sent",
			rule:   "a message that was certainly not sent is ErrUndelivered",
			edits:  in("sharding", "\tif ctx.Err() != nil {\n\t\treturn nil, l.region", "\tif false {\n\t\treturn nil, l.region"),
			killer: killer{pkg: "./sharding", run: "TestAsk_WithAnEndedContextSendsNothing"},
		},
		{
			name:   "take an error in a reply for an error of Ask",
			rule:   "a message that was handled is not sent again, whatever its reply is",
			edits:  in("internal/ask", "(%T: %v): only", "(%T: %w): only"),
			killer: killer{pkg: "./sharding", run: "^TestAsk_AReplyThatIsNotProtobufIsAnError$"},
		},
		{
			name:   "return nothing for a reply of another type",
			rule:   "a reply of another type than the caller names is an error",
			edits:  in("internal/ask", "reply.(Res)\n\tif !ok {", "reply.(Res)\n\tif !ok && reply != nil {"),
			killer: killer{pkg: "./internal/ask", run: "^TestAs_ANilReply$"},
		},
		{
			name:   "send to a nil PID in a goroutine of the session",
			rule:   "nil arguments never end the process",
			edits:  in("coordination", "_, _ = system.Root, pid.Id", "_ = 0"),
			killer: killer{pkg: "./coordination", run: "^TestMisuse_ActorsOfANilLease$"},
		},
		{
			name:   "show a component that is nil",
			rule:   "nil arguments never end the process",
			edits:  in("cockpit", "bool { return one == nil })", "bool { return one == nil && false })"),
			killer: killer{pkg: "./cockpit", run: "^TestShow_NilComponentsAreLeftOut$"},
		},
		{
			name:   "read a collection that no constructor has made",
			rule:   "zero values are invalid arguments",
			edits:  in("distributeddata", "if s.layout == nil {", "if s.layout == nil && false {"),
			killer: killer{pkg: "./distributeddata", run: "^TestZero_ValuesAreInvalid$"},
		},
		{
			name:   "unwrap an Envelope that is nil",
			rule:   "sending to the PID of a region is always safe",
			edits:  in("sharding", "case e == nil:\n\t\treturn nil, fmt.Errorf(\"%w: no message", "case false:\n\t\treturn nil, fmt.Errorf(\"%w: no message"),
			killer: killer{pkg: "./sharding", run: "^TestSend_RefusesIdsAndMessagesThatCannotBe$"},
		},
		{
			name:   "wait for a log handler in the session",
			rule:   "nobody waits for a log handler that does not return",
			edits:  in("coordination", "c.Logger = logging.Bounded(c.Logger)", "_ = logging.Bounded(c.Logger)"),
			killer: killer{pkg: "./coordination", run: "^TestSession_ALogHandlerThatBlocksLosesNoLease$"},
		},
		{
			name:   "wait for a log handler in a member",
			rule:   "nobody waits for a log handler that does not return",
			edits:  in("node", "c.Logger = logging.Bounded(c.Logger)", "_ = logging.Bounded(c.Logger)"),
			killer: killer{pkg: "./lab/noderun", run: "^TestRun_ALogHandlerThatBlocksStopsNothing$"},
		},
		{
			name:   "wait a second for each line of a log handler that does not return",
			rule:   "nobody waits for a log handler that does not return",
			edits:  in("internal/logging", "if q.running && q.late.IsZero() {", "if false {"),
			killer: killer{pkg: "./internal/logging", run: "^TestBounded_NobodyWaitsForAHandlerThatBlocks$"},
		},
		{
			name:   "keep each line for a log handler that does not return",
			rule:   "memory is bounded",
			edits:  in("internal/logging", "if !wait && len(q.waiting) >= most {", "if false {"),
			killer: killer{pkg: "./internal/logging", run: "^TestBounded_NobodyWaitsForAHandlerThatBlocks$"},
		},
		{
			name:   "log nothing after a log handler has ended its goroutine",
			rule:   "a function of the application harms only its caller",
			edits:  in("internal/logging", "go q.run()\n\t\t}\n\t}()", "_ = 0\n\t\t}\n\t}()"),
			killer: killer{pkg: "./internal/logging", run: "^TestBounded_AHandlerMayPanicOrEndItsGoroutine$"},
		},
		{
			name:   "log each event at which a subscriber panics",
			rule:   "a fault that lasts is not a flood of lines",
			edits:  in("internal/contain", "if !loud {", "if false && !loud {"),
			killer: killer{pkg: "./internal/contain", run: "^TestPublish_FailuresAreOneLineInTenSeconds$"},
		},
		{
			name:   "report a state that is lost because all members stop",
			rule:   "an orderly stop logs no error",
			edits:  in("singleton", "m.log.Info(\"singleton state lost: no", "m.log.Error(\"singleton state lost: no"),
			killer: killer{pkg: "./singleton", run: "^TestWarm_TheLastMemberLogsNoError$"},
		},
		{
			name:   "say nothing of a function that does not return",
			rule:   "each fault is logged in one line",
			edits:  in("internal/contain", "time.AfterFunc(patience,", "time.AfterFunc(100*time.Hour,"),
			killer: killer{pkg: "./sharding", run: "^TestStarted_NotWhenTheLeaseWasLostMeanwhile$"},
		},
		{
			name:   "say nothing of a Strategy that does not return",
			rule:   "each fault is logged in one line",
			edits:  in("sharding", "log := func() *slog.Logger { return l.log }", "log := func() *slog.Logger { return slog.New(slog.DiscardHandler) }"),
			killer: killer{pkg: "./sharding", run: "^TestStrategy_MayDoWhatItMustNot$"},
		},
		{
			name:   "say at each call that the Strategy fails",
			rule:   "each fault is logged in one line",
			edits:  in("sharding", "n, due := l.mistakes.Due(l.clock.Now()); due", "n, due := l.mistakes.Due(l.clock.Now()); due || true"),
			killer: killer{pkg: "./sharding", run: "^TestStrategy_MayDoWhatItMustNot$"},
		},
		{
			name:   "say that each of many functions does not return",
			rule:   "each fault is logged in one line",
			edits:  in("internal/contain", "late && b.late == 1", "late"),
			killer: killer{pkg: "./internal/contain", run: "^TestBlocking_IsOneLine$"},
		},
		{
			name:   "say only once that functions do not return",
			rule:   "each fault is logged in one line",
			edits:  in("internal/contain", "\t\t\tb.late--\n", ""),
			killer: killer{pkg: "./internal/contain", run: "^TestBlocking_IsOneLine$"},
		},
	}
}
