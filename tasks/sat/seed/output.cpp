#include "output.h"

#include <string>

namespace {

const std::size_t MAX_LINE_CHARS = 78;

// Write words with a `v` at the beginning of each line, in lines that are not too long.
class ValueLines {
  public:
    explicit ValueLines(std::ostream& output) : output_(output), line_("v") {}

    void add(const std::string& word) {
        if (line_.size() + 1 + word.size() > MAX_LINE_CHARS) {
            flush();
        }
        line_ += " " + word;
    }

    void flush() {
        output_ << line_ << std::endl;
        line_ = "v";
    }

  private:
    std::ostream& output_;
    std::string line_;
};

void write_model(std::ostream& output, const std::vector<bool>& model) {
    ValueLines lines(output);
    for (std::size_t variable = 1; variable < model.size(); ++variable) {
        lines.add(std::to_string(make_literal(static_cast<Variable>(variable), model[variable])));
    }
    lines.add("0");
    lines.flush();
}

}  // namespace

int exit_code_of(Answer answer) {
    switch (answer) {
        case Answer::satisfiable:
            return 10;
        case Answer::unsatisfiable:
            return 20;
        case Answer::unknown:
            break;
    }
    return 0;
}

void write_answer(std::ostream& output, Answer answer, const std::vector<bool>& model) {
    switch (answer) {
        case Answer::satisfiable:
            output << "s SATISFIABLE" << std::endl;
            write_model(output, model);
            break;
        case Answer::unsatisfiable:
            output << "s UNSATISFIABLE" << std::endl;
            break;
        case Answer::unknown:
            output << "s UNKNOWN" << std::endl;
            break;
    }
}

void write_comment(std::ostream& output, const std::string& message) {
    output << "c " << message << std::endl;
}
