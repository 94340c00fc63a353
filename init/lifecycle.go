package supervisor

// state is where a command is in its life.
type state int

const (
	waiting     state = iota // for what it needs
	starting                 // its keeper has been started
	running                  // its main process runs, and has not shown that it is ready
	ready                    // it has, or need not
	preStopping              // its PRE_STOP command runs
	stopping                 // it has been told to stop
	fallen                   // its keeper died, and its tree is being ended
	backingOff               // until its next run
	completed                // for good: the last run was a success
	failed                   // for good: it was not, and there will be no other
	stopped                  // for good: with all the rest, before it had completed
	states
)

var stateNames = [states]string{
	"waiting", "starting", "running", "ready", "pre-stopping", "stopping", "fallen", "backing off", "completed", "failed", "stopped",
}

func (s state) String() string { return stateNames[s] }

// forGood reports whether nothing will run again.
func (s state) forGood() bool { return s == completed || s == failed || s == stopped }

// event is what happens to a command.
type event int

const (
	needsMet   event = iota // what it depends on is as it has to be
	launched                // its main process has been executed
	shownReady              // by a probe, a port, a descriptor
	notReady                // it has failed to, too often
	deadline                // its run time is over
	stop                    // everything ends
	preStopped              // the PRE_STOP command has ended
	graceOver               // it has had its grace period
	keeperDied              // somebody has killed its keeper
	ended                   // nothing of its tree is left
	waited                  // its back-off is over
	events
)

var eventNames = [events]string{
	"needs met", "launched", "shown ready", "not ready", "deadline", "stop", "pre-stopped", "grace over", "keeper died", "ended", "waited",
}

func (e event) String() string { return eventNames[e] }

// table is the lifecycle: what is done in a state when something happens.
type table [states]map[event]func(*service)

// lifecycle says what a command does when something happens to it. What is not
// there cannot happen; ignore is for what can and changes nothing, such as the
// deadline of a command that is stopping already.
func lifecycle() table {
	return table{
		waiting: {needsMet: (*service).start, stop: (*service).giveUp},
		starting: {
			launched: (*service).run, stop: (*service).haltEarly, keeperDied: (*service).fall, ended: (*service).over,
		},
		running: {
			shownReady: (*service).becomeReady, notReady: (*service).failReadiness, deadline: (*service).expire, stop: (*service).halt,
			keeperDied: (*service).fall, ended: (*service).over,
		},
		ready: {
			deadline: (*service).expire, stop: (*service).halt, keeperDied: (*service).fall, ended: (*service).over,
		},
		preStopping: {
			preStopped: (*service).tell, graceOver: (*service).kill, keeperDied: (*service).fall, ended: (*service).over,
			stop: ignore, deadline: ignore,
		},
		stopping: {
			graceOver: (*service).kill, keeperDied: (*service).fall, ended: (*service).over,
			stop: ignore, deadline: ignore, launched: ignore,
		},
		fallen:     {ended: (*service).over, stop: ignore, graceOver: ignore},
		backingOff: {waited: (*service).start, stop: (*service).giveUp},
		completed:  {stop: ignore},
		failed:     {stop: ignore},
		stopped:    {stop: ignore},
	}
}

func ignore(*service) {}

// handle has the command do what the table says.
func (s *service) handle(e event) {
	do := s.sup.table[s.state][e]
	if do == nil {
		s.sup.log.Error("event out of place", "command", s.Name, "state", s.state.String(), "event", e.String())
		return
	}
	before := s.state
	do(s)
	if s.state != before {
		s.sup.log.Debug("state changed", "command", s.Name, "from", before.String(), "to", s.state.String(), "event", e.String())
	}
}
