# Numbers of fits with offsets, written to offsets.json beside this script, from the data sets that are already there and in
# ../choice: Rscript make_offsets.R, in this folder (R 4.2; survival, nnet, brglm2, sandwich, jsonlite are on CRAN).
suppressMessages({library(survival); library(nnet); library(brglm2); library(sandwich)})
options(digits = 15)
tight <- list(epsilon = 1e-14, maxit = 100)
value <- function(fit) as.numeric(logLik(fit))
# λ of each term by refitting without it.
ratios <- function(terms, fitted) {
  full <- value(fitted(terms))
  as.list(sapply(terms, function(term) 2 * (full - value(fitted(setdiff(terms, term))))))
}
rhs <- function(terms) if (length(terms)) paste(terms, collapse = " + ") else "1"

logit <- function(data, action, terms, cluster = NULL, firth = FALSE) {
  data$.y <- as.integer(factor(data[[action]])) == 2
  fitted <- function(terms, ...) glm(as.formula(paste(".y ~", rhs(terms))), binomial, data, offset = known, ...)
  fit <- fitted(terms, control = tight)
  entry <- list(coefficients = as.list(coef(fit)), errors = as.list(sqrt(diag(vcov(fit)))), log_likelihood = value(fit),
    null = value(fitted(character(0), control = tight)), statistics = ratios(terms, function(t) fitted(t, control = tight)))
  if (!is.null(cluster)) entry$clustered <- as.list(sqrt(diag(vcovCL(fit, cluster = data[[cluster]]))))
  if (firth) entry$firth <- as.list(coef(fitted(terms, method = "brglmFit", type = "AS_mean", epsilon = 1e-13, maxit = 10000)))
  entry
}

linear <- function(data, action, terms, cluster = NULL) {
  fitted <- function(terms) lm(as.formula(paste(action, "~", rhs(terms))), data, offset = known)
  fit <- fitted(terms)
  one <- drop1(fit, test = "F")
  entry <- list(coefficients = as.list(coef(fit)), errors = as.list(sqrt(diag(vcov(fit)))), log_likelihood = value(fit),
    null = value(fitted(character(0))), statistics = ratios(terms, fitted),
    p_values = setNames(as.list(one[["Pr(>F)"]][-1]), rownames(one)[-1]))
  if (!is.null(cluster)) entry$clustered <- as.list(sqrt(diag(vcovCL(fit, cluster = data[[cluster]]))))
  entry
}

several <- function(data, action, terms, known) {
  data$.y <- factor(data[[action]])
  fitted <- function(terms) multinom(as.formula(paste(".y ~", rhs(terms), "+ offset(known)")), data, trace = FALSE,
    maxit = 5000, abstol = 1e-14, reltol = 1e-14)
  list(log_likelihood = value(fitted(terms)), null = value(fitted(character(0))), statistics = ratios(terms, fitted))
}

choices <- function(data, always, terms) {
  control <- coxph.control(eps = 1e-13, toler.chol = 1e-14, iter.max = 60)
  fitted <- function(terms) clogit(as.formula(paste("chosen ~", rhs(c(always, terms)), "+ offset(known) + strata(id)")),
    data, method = "exact", control = control)
  fit <- fitted(terms)
  list(log_likelihood = fit$loglik[2], coefficients = as.list(coef(fit)), errors = as.list(sqrt(diag(vcov(fit)))),
    statistics = ratios(terms, fitted))
}

table_of <- function(name) read.csv(paste0(name, ".csv"))
travel <- read.csv("../choice/travel_mode.csv")
travel <- transform(travel, chosen = as.integer(choice == "yes"), id = individual, known = -vcost / 50,
  air = as.integer(mode == "air"), bus = as.integer(mode == "bus"), car = as.integer(mode == "car"))
metro <- read.csv(gzfile("../choice/swissmetro.csv.gz"))
metro <- do.call(rbind, lapply(c("car", "metro", "train"), function(m) data.frame(
  id = seq_len(nrow(metro)), chosen = as.integer(metro$choice == m), francs = metro[[paste0("francs_", m)]],
  known = -metro[[paste0("minutes_", m)]] / 100, car = as.integer(m == "car"), metro = as.integer(m == "metro"),
  available = metro[[paste0("available_", m)]])))
iris <- table_of("iris")
found <- list(
  birthwt = logit(transform(table_of("birthwt"), known = 2 - lwt / 60), "low", c("age", "smoke", "ht", "ui")),
  infert = logit(transform(table_of("infert"), known = 0.8 * spontaneous), "case", c("age", "parity", "induced"), "stratum"),
  mtcars = logit(transform(table_of("mtcars"), known = 1 - hp / 100), "am", "drat", firth = TRUE),
  attitude = linear(transform(table_of("attitude"), known = 0.3 * advance), "rating", c("complaints", "learning")),
  chick_weight = linear(transform(table_of("chick_weight"), known = 8 * Time, Diet = factor(Diet)), "weight",
    c("Time", "Diet"), "Chick"),
  iris = several(iris, "Species", "Size", cbind(0, iris$Size / 2, sqrt(iris$Size))),
  travel = choices(travel, c("air", "bus", "car"), c("wait", "travel", "gcost")),
  swissmetro = choices(metro[metro$available == 1, ], c("car", "metro"), "francs"))
writeLines(jsonlite::toJSON(found, digits = NA, auto_unbox = TRUE, pretty = TRUE), "offsets.json")
