package supervisor

import (
	"fmt"
	"slices"
	"strings"
)

// A need is what another command has to be before one may start.
type need struct {
	on    *command
	until Condition
}

// order makes the needs of every command: what DEPENDS_ON says, and what the
// types mean. Init commands run one after the other before the rest, but for a
// sidecar that one of them depends on; sidecars start before main commands.
func (plan *Plan) order(problems *Problems) {
	if len(plan.commands) < 2 && plan.alone() {
		if d := plan.line.Command.DependsOn; len(d) > 0 {
			problems.add(Problem{Source: plan.line.source("DEPENDS_ON"), Text: fmt.Sprintf("there is no command %q", d[0].On), Hint: "name one of " + Prefix + "COMMANDS"})
		}
		return
	}
	for _, c := range plan.commands {
		plan.explicit(c, problems)
	}
	inits, sidecars := plan.ofType(TypeInit), plan.ofType(TypeSidecar)
	for i, c := range inits[min(1, len(inits)):] {
		c.needs = append(c.needs, need{inits[i], CompletedRun})
	}
	for _, c := range sidecars {
		for _, of := range inits {
			if !of.reaches(c, nil) {
				c.needs = append(c.needs, need{of, CompletedRun})
			}
		}
	}
	for _, c := range plan.ofType(TypeMain) {
		for _, of := range inits {
			c.needs = append(c.needs, need{of, CompletedRun})
		}
		for _, of := range sidecars {
			c.needs = append(c.needs, need{of, Started})
		}
	}
	plan.cycles(problems)
}

func (plan *Plan) ofType(t Type) (list []*command) {
	for _, c := range plan.commands {
		if c.Command.Type == t {
			list = append(list, c)
		}
	}
	return list
}

func (plan *Plan) explicit(c *command, problems *Problems) {
	for _, d := range c.Command.DependsOn {
		i := slices.IndexFunc(plan.commands, func(other *command) bool { return other.Name == d.On })
		switch {
		case i < 0:
			problems.add(Problem{Source: c.source("DEPENDS_ON"), Text: fmt.Sprintf("there is no command %q", d.On), Hint: didYouMean(d.On, plan.names())})
		case plan.commands[i] == c:
			problems.add(Problem{Source: c.source("DEPENDS_ON"), Text: c.Name + " depends on itself", Hint: "take it out"})
		case d.Until == CompletedRun && plan.commands[i].Command.RestartPolicy == RestartAlways:
			problems.add(Problem{
				Source: c.source("DEPENDS_ON"), Text: fmt.Sprintf("%s is restarted always, so it never completes", d.On),
				Hint: "write " + d.On + ":started or :ready, or give it another RESTART_POLICY",
			})
		default:
			c.needs = append(c.needs, need{plan.commands[i], d.Until})
		}
	}
}

// names are those of all commands, in start order.
func (plan *Plan) names() (list []string) {
	for _, c := range plan.commands {
		list = append(list, c.Name)
	}
	return list
}

// reaches reports whether c waits, by however many steps, for other.
func (c *command) reaches(other *command, seen []*command) bool {
	for _, n := range c.needs {
		if n.on == other {
			return true
		}
		if !slices.Contains(seen, n.on) {
			seen = append(seen, n.on)
			if n.on.reaches(other, seen) {
				return true
			}
		}
	}
	return false
}

// cycles reports commands that wait for each other, each cycle once, under the
// DEPENDS_ON of one that has it: what the types mean makes none alone.
func (plan *Plan) cycles(problems *Problems) {
	var said []*command
	for _, c := range plan.commands {
		if len(c.Command.DependsOn) == 0 || slices.Contains(said, c) || !c.reaches(c, nil) {
			continue
		}
		path := c.pathTo(c, nil)
		said = append(said, path...)
		words := []string{c.Name}
		for _, on := range path {
			words = append(words, on.Name)
		}
		problems.add(Problem{
			Source: c.source("DEPENDS_ON"), Text: "waits for itself: " + strings.Join(words, " -> "),
			Hint: "main commands wait for init commands and sidecars anyway; take one of these out",
		})
	}
}

// pathTo returns the commands on a way from c to other, with other.
func (c *command) pathTo(other *command, seen []*command) []*command {
	for _, n := range c.needs {
		if n.on == other {
			return []*command{other}
		}
		if slices.Contains(seen, n.on) {
			continue
		}
		seen = append(seen, n.on)
		if rest := n.on.pathTo(other, seen); rest != nil {
			return append([]*command{n.on}, rest...)
		}
	}
	return nil
}

// validateTypes checks what holds for the commands together.
func (plan *Plan) validateTypes(problems *Problems) {
	var stdin []*command
	for _, c := range plan.commands {
		if c.Command.Stdin == StdinInherit {
			stdin = append(stdin, c)
		}
	}
	for _, c := range stdin[min(1, len(stdin)):] {
		problems.add(Problem{Source: c.source("STDIN"), Text: stdin[0].Name + " has foster's stdin already", Hint: "at most one command can"})
	}
	if plan.line != nil && plan.line.Command.Type != TypeMain {
		problems.add(Problem{Source: plan.line.source("TYPE"), Text: "the command of the command line is a main command", Hint: "name others in " + Prefix + "COMMANDS"})
	}
	if plan.line != nil && len(plan.line.Command.Argv) > 0 {
		problems.add(Problem{Source: plan.line.source("COMMAND"), Text: "there is a command on the command line", Hint: "give one of the two"})
	}
	if len(plan.Config.PassFDs) > 0 && (len(plan.commands) > 1 || plan.commands[0].supervised()) {
		problems.add(Problem{Source: plan.source("PASS_FDS"), Text: "descriptors are passed to the only command, not to one of several", Hint: "take it out"})
	}
	if len(plan.commands) > 0 && len(plan.ofType(TypeMain)) == 0 {
		problems.add(Problem{Source: Prefix + "COMMANDS", Text: "no main command: nothing would keep the container alive", Hint: "set TYPE of one to main, or leave it out"})
	}
}

// nameProblems finds names whose variables could be taken for another's.
func (plan *Plan) nameProblems(problems *Problems) {
	owner := make(map[string]string)
	for _, name := range variables(Settings(), Prefix) {
		owner[name] = "foster itself"
	}
	for i, c := range plan.commands {
		other, variable := plan.clash(c, plan.commands[:i], owner)
		if variable == "" {
			continue
		}
		c.clashes = true
		for _, o := range plan.commands {
			o.clashes = o.clashes || o.Name == other
		}
		problems.add(Problem{
			Source: Prefix + "COMMANDS", Text: fmt.Sprintf("%q: %s could be a variable of %s as well", c.Name, variable, other),
			Hint: "give it another name",
		})
	}
}

// clash returns whose variable one of c's could be, and enters c's in owner.
func (plan *Plan) clash(c *command, before []*command, owner map[string]string) (other, variable string) {
	for _, v := range variables(CommandSettings(), prefixOf(c.Name)) {
		if variable == "" && injected(v) {
			other, variable = "a Service called foster", v
		}
		if o, taken := owner[v]; taken && variable == "" {
			other, variable = o, v
		}
		owner[v] = c.Name
	}
	for _, o := range before {
		for _, pair := range [][2]*command{{c, o}, {o, c}} {
			if variable == "" && strings.HasPrefix(prefixOf(pair[0].Name), prefixOf(pair[1].Name)+envKey) {
				other, variable = o.Name, prefixOf(pair[0].Name)+"COMMAND"
			}
		}
	}
	return other, variable
}
